/** The constructor and the combinators: their description, the challenge of a failure, and when the hook is called. */
import { either as E, option as O, readerTaskEither as RTE } from 'fp-ts'
import { pipe } from 'fp-ts/lib/function.js'
import type { Request } from 'koa'
import {
  anyOf,
  apiKeyCookie,
  apiKeyHeader,
  AuthError,
  authenticator,
  Challenge,
  httpBearer,
  optional,
  type Authenticator,
} from 'koa-with-auth'
import { altW, describedAs, fromFunction, isAuthenticator, flatMap } from 'koa-with-auth/fp'
import { describe, expect, it } from 'vitest'
import { mockRequest } from 'koa-with-auth/testing'
import { readerOf } from '../../src/core/Authenticator.js'
import { Attempt } from '../../src/core/Exchange.js'
import { row } from '../support/models/row.js'

const key = apiKeyHeader({ authenticate: (_request, key): E.Either<AuthError, string> => E.right(key) })
const bearer = httpBearer({ authenticate: () => 'anna' })
// Safe: JavaScript may pass it, and a list takes it
const plain = (() => 'anna') as unknown as Authenticator<string>
const cookieKey = apiKeyCookie({ authenticate: (_request, key) => key })
const elsewhere = mockRequest({
  method: 'POST',
  fields: [
    ['Host', 'api.example'],
    ['Sec-Fetch-Site', 'cross-site'],
    ['Cookie', 'key=k'],
    ['key', 'k'],
  ],
})

describe('authenticator', () => {
  const sent = (value: unknown) => ({ challenge: Challenge.make('Test'), ambient: false, extract: () => O.some(value) })

  it('5.1.4 calls the hook with the request itself and the decoded credential', () => {
    const asked: unknown[] = []
    const request = mockRequest({ fields: [['key', 'k1']] })
    const remembering = apiKeyHeader({ authenticate: (...args: [Request, string]) => asked.push(...args) })
    expect(remembering.evaluate(request)).toStrictEqual(E.right(2))
    expect(asked[0]).toBe(request)
    expect(asked[1]).toBe('k1')
  })

  it('decision "length of a credential": the default is 8192 characters, and longer ones are malformed', () => {
    const of = (length: number) =>
      authenticator({ ...sent('k'.repeat(length)), authenticate: () => 'anna' }).evaluate(mockRequest())
    expect(of(8192)).toStrictEqual(E.right('anna'))
    expect(of(8193)).toMatchObject(E.left(AuthError.malformed))
  })

  it.each([row('nothing', '', 'syntax'), row('two values', ['a', 'a'], 'twice')])(
    'without a codec, $description is malformed and the hook is not called',
    ({ input, expected }) => {
      const own = authenticator({ ...sent(input), authenticate: () => expect.unreachable() })
      expect(own.evaluate(mockRequest())).toMatchObject(E.left({ _tag: 'malformed', why: expected }))
    },
  )

  it('a schema may be late: its refusal is malformed, and an exception of it or of the hook behind it is raised', async () => {
    const error = new Error('bug')
    const of = (validate: () => Promise<{ value: string } | { issues: [] }>, authenticate = () => 'anna') =>
      authenticator({
        ...sent('k'),
        credentials: { '~standard': { version: 1, vendor: 'own', validate } },
        authenticate,
      }).evaluate(mockRequest())
    expect(await of(async () => ({ value: 'k' }))).toStrictEqual(E.right('anna'))
    expect(await of(async () => ({ issues: [] }))).toMatchObject(E.left(AuthError.malformed))
    const raise = () => {
      throw error
    }
    expect(await of(async () => ({ value: 'k' }), raise)).toMatchObject(E.left({ _tag: 'raised', error }))
    expect(await of(() => Promise.reject(error))).toMatchObject(E.left({ _tag: 'raised', error: { cause: error } }))
  })

  it('credentials that were decoded ahead count for this decoder and this value alone', () => {
    const [made, request] = [authenticator({ ...sent('k'), authenticate: (_request, key) => key }), mockRequest()]
    const { decode = expect.unreachable() } = readerOf(made) ?? {}
    const of = (decoded: Attempt['decoded']) => made.evaluate(request, Object.assign(new Attempt(request), { decoded }))
    const credentials = E.right('ahead')
    expect(of({ decode, sent: 'k', credentials })).toStrictEqual(E.right('ahead'))
    expect(of({ decode, sent: 'other', credentials })).toStrictEqual(E.right('k'))
    expect(of({ decode: () => credentials, sent: 'k', credentials })).toStrictEqual(E.right('k'))
  })

  it('every failure has the challenge, which may be a function of the failure', () => {
    const asking = { ...sent('x'), challenge: ({ _tag }: AuthError) => Challenge.make('Test', { error: _tag }) }
    const of = (answer: unknown) => authenticator({ ...asking, authenticate: () => answer }).evaluate(mockRequest())
    for (const error of [AuthError.expired, AuthError.insufficient(['a']), AuthError.unavailable(1)]) {
      const challenge = Challenge.make('Test', { error: error._tag })
      expect(of(E.left(error))).toStrictEqual(E.left({ ...error, challenge }))
    }
    expect(of(false)).toStrictEqual(
      E.left({ _tag: 'invalid', challenge: Challenge.make('Test', { error: 'invalid' }) }),
    )
  })

  it('the challenge of a kind is copied', () => {
    const parameters: Record<string, string> = { hint: 'ask us' }
    const own = authenticator({
      ...sent('x'),
      challenge: Object.freeze({ scheme: 'Own', parameters }),
      authenticate: () => false,
    })
    parameters['hint'] = 'changed later'
    expect(own.evaluate(mockRequest())).toMatchObject(E.left({ challenge: { parameters: { hint: 'ask us' } } }))
  })

  it('A-30 an exception of extract or the codec is raised', () => {
    const error = new Error('part')
    const raise = () => {
      throw error
    }
    const made = authenticator({ ...sent('x'), extract: raise, authenticate: () => 'anna' })
    expect(made.evaluate(mockRequest())).toMatchObject(E.left({ _tag: 'raised', error }))
  })
})

describe('B-31 a write from another site with a credential that browsers send', () => {
  it('is forged if one of several kinds is sent by browsers, which an RTE is described as', async () => {
    const described = describedAs(altW(() => cookieKey)(key))(RTE.of('anna'))
    expect(await described.evaluate(elsewhere)).toMatchObject(E.left({ _tag: 'forged' }))
  })

  it('decision "cookie kinds inside a bare RTE": describedAs with another kind does not switch the check off', async () => {
    const disguised = describedAs(key)(pipe(cookieKey, RTE.map(String)))
    expect(await disguised.evaluate(elsewhere)).toMatchObject(E.left({ _tag: 'forged' }))
  })

  it('a refused cookie is refused, not forged, so another site learns nothing', () => {
    const refusing = apiKeyCookie({ authenticate: () => false })
    expect(refusing.evaluate(elsewhere)).toMatchObject(E.left({ _tag: 'invalid' }))
  })
})

it('fromFunction returns an authenticator as it is', () => void expect(fromFunction(bearer)).toBe(bearer))

describe('isAuthenticator', () => {
  it.each([
    row('a kind', bearer, true),
    row('alternatives', anyOf([bearer]), true),
    row('an alternative that is a plain function', altW(() => plain)(bearer), true),
    row('a mapped kind', flatMap(String)(bearer), true),
    row("fp-ts's map of a kind", pipe(bearer, RTE.map(String)), false),
    row('a function', () => true, false),
    row('an object with the fields of an authenticator', { ...bearer }, false),
    row('null', null, false),
  ])('$description: $expected', ({ input, expected }) => {
    expect(isAuthenticator(input)).toBe(expected)
  })
})

describe('the challenges of a list (B-06)', () => {
  const challengesOf = async (made: Authenticator<unknown>, fields: ReadonlyArray<readonly [string, string]> = []) => {
    const result = await made.evaluate(mockRequest({ fields }))
    return E.isLeft(result) ? AuthError.branchesOf(result.left).map(({ challenge }) => challenge?.scheme) : result
  }

  it('there is one for each scheme of an alternative that is described as several', async () => {
    const several = describedAs(altW(() => cookieKey)(bearer))(RTE.left(AuthError.expired))
    expect(await challengesOf(anyOf([several, key]))).toStrictEqual(['Bearer', 'ApiKey', 'ApiKey'])
  })
})

describe('arguments of codecs and functions', () => {
  it('a codec gets only what was sent, and no context that could keep it', () => {
    const seen: unknown[] = []
    const kind = authenticator({
      challenge: Challenge.make('Own'),
      ambient: false,
      extract: () => O.some('sent'),
      credentials: { name: 'Own', validate: (...args) => (seen.push(args), E.right('c')), decode: () => E.right('c') },
      authenticate: () => 'anna',
    })
    expect(kind.evaluate(mockRequest())).toStrictEqual(E.right('anna'))
    expect(seen).toStrictEqual([['sent', []]])
  })

  it('a map over an optional authenticator is not called after a bad credential of an earlier one', () => {
    const asked: unknown[] = []
    const list = anyOf([
      apiKeyHeader({ authenticate: () => false }),
      flatMap((u: unknown) => (asked.push(u), 'somebody'))(optional(bearer)),
    ])
    const result = list.evaluate(mockRequest({ fields: [['key', 'bad']] }))
    expect(result).toMatchObject({ _tag: 'Left', left: { _tag: 'invalid' } })
    expect(asked).toStrictEqual([])
    expect(list.evaluate(mockRequest())).toStrictEqual(E.right('somebody'))
  })

  it.each([{ evaluate: 1, description: {} }, { evaluate: () => 1 }, { description: {} }])(
    'is false for a function with %o',
    (parts) => expect(isAuthenticator(Object.assign(() => 1, parts))).toBe(false),
  )
})
