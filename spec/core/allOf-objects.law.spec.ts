/**
 * In `allOf`, all credentials are checked before any object is looked up, each credential and each object once. What let in
 * is noted once, too, and nothing else is.
 */
import fc from 'fast-check'
import { pipe } from 'fp-ts/lib/function.js'
import { allOf, anyOf, apiKeyHeader, authorize, optional, owned, type Authenticator } from 'koa-with-auth'
import { firstPresent, map } from 'koa-with-auth/fp'
import { mockRequest } from 'koa-with-auth/testing'
import { describe, expect, it } from 'vitest'
import { evidenceOf } from '../../src/core/Evidence.js'
import { PrincipalSource } from '../../src/core/ends.js'
import { Attempt } from '../../src/core/Exchange.js'

type Sent = 'good' | 'bad' | 'absent'

/** One member: a credential with objects, and what is around it. */
interface Member {
  readonly sent: Sent
  readonly objects: ReadonlyArray<boolean>
  readonly around: 'nothing' | 'optional' | 'anyOf' | 'firstPresent' | 'authorize' | 'map' | 'allOf' | 'anyOf allOf'
  /** What was sent for the other member of a group. What is sent for a third one is good. */
  readonly other: Sent
  readonly isLate: boolean
}

const sent = fc.constantFrom<Sent>('good', 'good', 'bad', 'absent')
const member: fc.Arbitrary<Member> = fc.record({
  sent,
  objects: fc.array(fc.boolean(), { maxLength: 2 }),
  around: fc.constantFrom('nothing', 'optional', 'anyOf', 'firstPresent', 'authorize', 'map', 'allOf', 'anyOf allOf'),
  other: sent,
  isLate: fc.boolean(),
})
// Random groups seldom have a group with objects last, and nothing that looks up before it
const good: Member = { sent: 'good', objects: [], around: 'nothing', other: 'good', isLate: false }

/** What is asked, in order: `0` is a credential, `0.1` and `0.2` the others of its group, and `0/1` an object. */
type Calls = string[]

/** When a credential ends; no other one ends then. */
const endingOf = (name: string): number => Date.UTC(2100) + Number(name) * 10

/** When the credentials end that are in a principal. */
const endingsIn = (principal: unknown): ReadonlyArray<number> => {
  if (Array.isArray(principal)) return principal.flatMap(endingsIn)
  const at = new PrincipalSource(principal).endFor()?.at
  return at === undefined ? [] : [at]
}

const made = (at: number, { objects, around, isLate }: Member, calls: Calls): Authenticator<unknown> => {
  const kind = (name: string) =>
    apiKeyHeader({
      paramName: `X-Key-${name}`,
      authenticate: (_request, key) => {
        calls.push(name)
        const answer = key === 'good' && { name, expiresAt: endingOf(name) }
        return isLate ? Promise.resolve(answer) : answer
      },
    })
  const own = objects.reduce<Authenticator<{ name: string }>>(
    (self, isFound, place) =>
      pipe(
        self,
        owned(`o${at}_${place}`, {
          param: 'id',
          find: () => {
            calls.push(`${at}/${place}`)
            return isLate ? Promise.resolve(isFound) : isFound
          },
        }),
      ),
    kind(String(at)),
  )
  const other = kind(`${at}.1`)
  switch (around) {
    case 'nothing':
      return own
    case 'optional':
      return optional(own)
    case 'anyOf':
      return anyOf([own, other])
    case 'firstPresent':
      return firstPresent([own, other])
    case 'authorize':
      return authorize(() => true)(own)
    case 'map':
      return map((one: { name: string }) => one)(own)
    case 'allOf':
      return allOf([own, other])
    case 'anyOf allOf':
      return anyOf([allOf([own, other]), kind(`${at}.2`)])
  }
}

/** What the model expects: the calls for credentials, and those for objects, of which the last one may refuse. */
const expected = (at: number, { sent, objects, around, other }: Member) => {
  const own = String(at)
  const asked = (name: string, what: Sent): Calls => (what === 'absent' ? [] : [name])
  const missing = objects.indexOf(false)
  const looked = objects.slice(0, missing === -1 ? undefined : missing + 1).map((_, place) => `${at}/${place}`)
  const [first, second] = [asked(own, sent), asked(`${own}.1`, other)]
  const isGood = other === 'good'
  switch (around) {
    case 'optional':
      return {
        credentials: first,
        isIn: sent !== 'bad',
        looked: sent === 'good' ? looked : [],
        isFound: sent !== 'good' || missing === -1,
      }
    case 'anyOf':
    case 'firstPresent': {
      const goesOn = around === 'anyOf' || sent === 'absent'
      if (sent === 'good') {
        const isOther = missing !== -1 && around === 'anyOf'
        return {
          credentials: first,
          isIn: true,
          looked: isOther ? [...looked, ...second] : looked,
          isFound: missing === -1 || (isOther && isGood),
        }
      }
      return { credentials: goesOn ? [...first, ...second] : first, isIn: goesOn && isGood, looked: [], isFound: true }
    }
    case 'allOf':
      return {
        credentials: sent === 'good' ? [...first, ...second] : first,
        isIn: sent === 'good' && isGood,
        looked,
        isFound: missing === -1,
      }
    case 'anyOf allOf': {
      const credentials = sent === 'good' ? [...first, ...second] : first
      const third = `${own}.2`
      if (sent !== 'good' || !isGood)
        return { credentials: [...credentials, third], isIn: true, looked: [], isFound: true }
      return { credentials, isIn: true, looked: missing === -1 ? looked : [...looked, third], isFound: true }
    }
    default:
      return { credentials: first, isIn: sent === 'good', looked, isFound: missing === -1 }
  }
}

describe('allOf', () => {
  it('asks all credentials in order, then all objects in order, each once', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(member, { minLength: 1, maxLength: 4 }), async (members) => {
        const calls: Calls = []
        const group = members.map((one, at) => made(at, one, calls))
        const fields = members.flatMap(({ sent, other }, at) => [
          [`X-Key-${at}`, sent] as const,
          [`X-Key-${at}.1`, other] as const,
          [`X-Key-${at}.2`, 'good'] as const,
        ])
        const request = mockRequest({ fields: fields.filter(([, value]) => value !== 'absent') })
        request.ctx['params'] = { id: 'n1' }
        // Safe: there is one at least
        const attempt = new Attempt(request)
        const result = await allOf(group as [Authenticator<unknown>]).evaluate(request, attempt)

        const all = members.map((one, at) => expected(at, one))
        const refused = all.findIndex(({ isIn }) => !isIn)
        const credentials = all.slice(0, refused === -1 ? undefined : refused + 1).flatMap((one) => one.credentials)
        const missing = all.findIndex(({ isFound }) => !isFound)
        const looked = all.slice(0, missing === -1 ? undefined : missing + 1).flatMap((one) => one.looked)
        expect(calls).toStrictEqual(refused === -1 ? [...credentials, ...looked] : credentials)
        expect(result._tag).toBe(refused === -1 && missing === -1 ? 'Right' : 'Left')
        if (refused !== -1 && result._tag === 'Left') expect(result.left._tag).not.toBe('notFound')
        if (result._tag === 'Right') {
          const noted = evidenceOf(result).accepted.map((source) => source.endFor(request)?.at)
          expect(noted.toSorted()).toStrictEqual(endingsIn(result.right).toSorted())
        }
      }),
      { examples: [[[good, { ...good, around: 'allOf', objects: [true] }]]] },
    )
  })
})
