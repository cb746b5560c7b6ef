/** M-08: `remembered` around `recoverUnavailable`, whose function reads more of the request than the credential. */
import { either as E } from 'fp-ts'
import { pipe } from 'fp-ts/lib/function.js'
import { allOf, apiKeyHeader, AuthError, httpBearer, remembered, throttled, type Authenticator } from 'koa-with-auth'
import { flatMap, fromFunction, recoverUnavailable } from 'koa-with-auth/fp'
import { mockRequest } from 'koa-with-auth/testing'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { describe, expect, it } from 'vitest'

const down = { is: true }
const hook = (): unknown => (down.is ? E.left(AuthError.unavailable()) : { user: 'of the token' })

/** Combinators around a token that reads a key during an outage. */
const kinds = (late: boolean) => {
  down.is = true
  const asked: string[] = []
  const token = httpBearer({
    authenticate: () => {
      asked.push('token')
      return late ? Promise.resolve().then(hook) : hook()
    },
  })
  const key = apiKeyHeader({
    authenticate: (_request, name) => {
      asked.push(`key ${name}`)
      return name !== 'unknown' && { user: name }
    },
  })
  const either = pipe(token, recoverUnavailable(key))
  const limiter = new RateLimiterMemory({ points: 5, duration: 60 })
  const recent = remembered({ maxAge: 60_000 })
  const all: Readonly<Record<string, Authenticator<unknown>>> = {
    around: recent(either),
    'around flatMap': pipe(
      either,
      flatMap((user) => user),
      recent,
    ),
    'around throttled': pipe(either, throttled({ limiter }), recent),
    twice: pipe(either, recent, recent),
  }
  return { all, asked }
}
const requestOf = (key: string) =>
  mockRequest({
    fields: [
      ['Authorization', 'Bearer shared'],
      ['key', key],
    ],
  })
const invalid = expect.objectContaining({ _tag: 'invalid' }) as unknown

describe.each(['around', 'around flatMap', 'around throttled', 'twice'])(
  'M-08 a function that recovers, %s',
  (name) => {
    describe.each([false, true])('async: %s', (late) => {
      it('is called for each request, and admits no caller as another', async () => {
        const { all, asked } = kinds(late)
        const a = all[name]!
        expect(await a.evaluate(requestOf('anna'))).toStrictEqual(E.right({ user: 'anna' }))
        expect(await a.evaluate(requestOf('sam'))).toStrictEqual(E.right({ user: 'sam' }))
        expect(await a.evaluate(requestOf('unknown'))).toStrictEqual(E.left(invalid))
        expect(asked).toStrictEqual(['token', 'key anna', 'token', 'key sam', 'token', 'key unknown'])
      })

      it('is called for each of several parallel requests, too', async () => {
        const { all } = kinds(late)
        const names = ['unknown', 'anna', 'sam']
        const results = await Promise.all(names.map(async (one) => all[name]!.evaluate(requestOf(one))))
        expect(results).toStrictEqual([E.left(invalid), E.right({ user: 'anna' }), E.right({ user: 'sam' })])
      })

      it('does not stop results of the token itself from being remembered', async () => {
        const { all, asked } = kinds(late)
        const a = all[name]!
        await a.evaluate(requestOf('anna'))
        down.is = false
        for (const one of ['anna', 'sam']) {
          expect(await a.evaluate(requestOf(one))).toStrictEqual(E.right({ user: 'of the token' }))
        }
        expect(asked).toStrictEqual(['token', 'key anna', 'token'])
      })
    })
  },
)

it.each([
  ['remembered', remembered({ maxAge: 60_000 })],
  ['throttled', throttled({ limiter: new RateLimiterMemory({ points: 5, duration: 60 }) })],
] as const)('a plain function that recovers is a plain function: %s of it is a TypeError', (_name, wrap) => {
  const plain = pipe(
    fromFunction((): unknown => true),
    recoverUnavailable(() => true),
  )
  expect(() => wrap(plain)).toThrow(/a is a plain function/)
})

it('M-08 a recovering function that calls a remembered kind: nothing of the outage is kept', async () => {
  const token = httpBearer({ authenticate: async () => E.left(AuthError.unavailable()) })
  const key = apiKeyHeader({ authenticate: (_request, name) => ({ user: name }) })
  const keyed = pipe(
    key,
    recoverUnavailable(() => false),
    remembered({ maxAge: 60_000 }),
  )
  const either = pipe(token, recoverUnavailable(keyed), remembered({ maxAge: 60_000 }))
  for (const name of ['anna', 'ben']) {
    const request = mockRequest({
      fields: [
        ['Authorization', 'Bearer t'],
        ['key', name],
      ],
    })
    expect(await either.evaluate(request)).toStrictEqual(E.right({ user: name }))
  }
})

it('M-08 keeps a success, also if another member of the list was recovered', async () => {
  const asked: string[] = []
  const reading = (paramName: string, isDown: boolean) =>
    pipe(
      apiKeyHeader({
        paramName,
        authenticate: (_request, key) => (asked.push(paramName), isDown ? AuthError.unavailable() : { key }),
      }),
      recoverUnavailable(() => ({ key: 'recovered' })),
    )
  const both = allOf([reading('one', true), pipe(reading('other', false), remembered({ maxAge: 60_000 }))])
  const ask = async () =>
    both.evaluate(
      mockRequest({
        fields: [
          ['one', 'a'],
          ['other', 'b'],
        ],
      }),
    )
  expect(E.isRight(await ask())).toBe(true)
  expect(await ask()).toStrictEqual(E.right([{ key: 'recovered' }, { key: 'b' }]))
  expect(asked).toStrictEqual(['one', 'other', 'one'])
})
