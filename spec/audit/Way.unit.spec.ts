/**
 * What protects an operation, in words: each kind and each combinator has words, and different trees have different
 * words.
 */
import fc from 'fast-check'
import {
  allOf,
  anyOf,
  apiKeyCookie,
  apiKeyHeader,
  apiKeyQuery,
  authenticator,
  authorize,
  Challenge,
  httpBasicAuth,
  httpBearer,
  optional,
  requireScopes,
  sessionAuth,
  sessionAuthIsStaff,
  sessionAuthSuperUser,
  sessionLoginAuth,
  type Authenticator,
  type Description,
  type SecurityScheme,
} from 'koa-with-auth'
import { firstPresent, fromFunction, lenient, flatMap, recoverUnavailable, timeout } from 'koa-with-auth/fp'
import { option as O } from 'fp-ts'
import { describe, expect, it } from 'vitest'
import { functionName } from '../../src/core/functionName.js'
import { compareAccess, descriptionInWords, type AccessPath, type Comparison } from '../../src/audit/Way.js'
import { occurring, runs } from '../support/runs/samples.js'

const authenticate = () => true
const bearer = httpBearer({ authenticate })
const basic = httpBasicAuth({ authenticate })
const key = apiKeyHeader({ paramName: 'X-API-Key', authenticate })
const read = requireScopes<unknown>(['read', 'write'], { granted: () => [] })
const admitted = () => true
const staff = functionName(admitted, 'staff')
const allowed = authorize<unknown>(admitted, { name: 'staff' })

const ofScheme = (scheme: SecurityScheme | undefined, challenge = 'Own', schemeName?: string) =>
  authenticator({
    ...(scheme && { scheme }),
    ...(schemeName !== undefined && { schemeName }),
    challenge: Challenge.make(challenge),
    ambient: false,
    extract: () => O.none,
    authenticate,
  })

const rows: ReadonlyArray<readonly [words: string, a: Authenticator<unknown>]> = [
  ['bearer', bearer],
  ['basic', basic],
  ['API key in query parameter key', apiKeyQuery({ authenticate })],
  ['API key in query parameter api_key', apiKeyQuery({ paramName: 'api_key', authenticate })],
  ['API key in header X-API-Key', key],
  ['API key in cookie key', apiKeyCookie({ authenticate })],
  ['session in cookie koa.sess', sessionLoginAuth],
  ['session in cookie sid', sessionAuth({ cookieName: 'sid' })],
  ['session in cookie koa.sess of a superuser', sessionAuthSuperUser()],
  ['session in cookie koa.sess of a superuser or staff member', sessionAuthIsStaff()],
  ['bearer "staffToken"', httpBearer({ schemeName: 'staffToken', authenticate })],
  ['digest', ofScheme({ type: 'http', scheme: 'Digest' })],
  ['OAuth 2.0 "login"', ofScheme({ type: 'oauth2', flows: {} }, 'Bearer', 'login')],
  ['OpenID Connect', ofScheme({ type: 'openIdConnect', openIdConnectUrl: 'https://id.example' })],
  ['client certificate', ofScheme({ type: 'mutualTLS' })],
  ['custom', fromFunction(() => true)],
  ['custom Webhook', ofScheme(undefined, 'Webhook')],
  ['bearer, or API key in header X-API-Key', anyOf([bearer, key])],
  ['bearer, or API key in header X-API-Key', anyOf({ user: bearer, client: key })],
  ['bearer, or basic, or custom', anyOf([anyOf([bearer, basic]), () => true])],
  ['first sent of (bearer, or basic)', firstPresent([bearer, basic])],
  ['all of (bearer, and API key in header X-API-Key)', allOf([bearer, key])],
  ['all of ((bearer, or basic), and API key in header X-API-Key)', allOf([anyOf([bearer, basic]), key])],
  ['all of (bearer, and basic), or API key in header X-API-Key', anyOf([allOf([bearer, basic]), key])],
  ['all of (first sent of (bearer, or basic), and custom)', allOf([firstPresent([bearer, basic]), () => true])],
  ['optional bearer', optional(bearer)],
  ['lenient bearer', lenient(bearer)],
  ['lenient optional bearer', lenient(optional(bearer))],
  ['optional (bearer, or basic)', optional(anyOf([bearer, basic]))],
  ['bearer, or optional basic', anyOf([bearer, optional(basic)])],
  ['optional all of (bearer, and basic)', optional(allOf([bearer, basic]))],
  ['bearer with scopes read, write', read(bearer)],
  ['(bearer with scopes read, write), or basic', anyOf([read(bearer), basic])],
  ['(bearer, or basic) with scopes read, write', read(anyOf([bearer, basic]))],
  ['all of (bearer, and basic) with scopes read, write', read(allOf([bearer, basic]))],
  ['all of (bearer, and (basic with scopes read, write))', allOf([bearer, read(basic)])],
  ['optional (bearer with scopes read, write)', optional(read(bearer))],
  [`bearer authorized by ${staff}`, allowed(bearer)],
  [`(bearer, or basic) authorized by ${staff}`, allowed(anyOf([bearer, basic]))],
  [`bearer, or (basic authorized by ${staff})`, anyOf([bearer, allowed(basic)])],
  [`optional (bearer authorized by ${staff})`, optional(allowed(bearer))],
  [`(bearer authorized by ${staff}) with scopes read, write`, read(allowed(bearer))],
  // What changes neither credentials nor rights adds no words
  ['bearer', flatMap((user: unknown) => [user])(bearer)],
  ['bearer', timeout(100)(bearer)],
  ['bearer', recoverUnavailable(() => ({ user: 'anna' }))(bearer)],
]

it.each(rows)('in words: %s', (words, { description }) => expect(descriptionInWords(description)).toBe(words))

// -------------------------------------------------------------------------------------
// no two alike
// -------------------------------------------------------------------------------------

const leaf = (name: string): Description => ofScheme({ type: 'http', scheme: name }).description

const { tree } = fc.letrec<{ tree: Description; group: Description[] }>((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom('one', 'two').map(leaf),
    tie('group').map((members): Description => ({ _tag: 'AnyOf', members })),
    tie('group').map((members): Description => ({ _tag: 'AnyOf', members, firstPresent: true })),
    tie('group').map((members): Description => ({ _tag: 'AllOf', members })),
    fc
      .tuple(tie('tree'), fc.boolean())
      .map(([member, lenient]): Description => ({ _tag: 'Optional', member, lenient })),
    fc
      .tuple(tie('tree'), fc.subarray(['read', 'write']))
      .map(([member, scopes]): Description => ({ _tag: 'Scoped', member, scopes })),
  ),
  group: fc.array(tie('tree'), { minLength: 2, maxLength: 3 }),
}))

/** The form that combinators make: alternatives of alternatives become one list. */
const flattened = (description: Description): Description => {
  switch (description._tag) {
    case 'Leaf':
      return description
    case 'AnyOf':
    case 'AllOf': {
      const members = description.members.map(flattened)
      return {
        ...description,
        members:
          description._tag === 'AllOf' || description.firstPresent
            ? members
            : members.flatMap((one) => (one._tag === 'AnyOf' && !one.firstPresent ? one.members : [one])),
      }
    }
    case 'Optional':
    case 'Scoped':
      return { ...description, member: flattened(description.member) }
  }
}

describe('words of trees', () => {
  it('law: two trees with the same words are equal', () => {
    const seen = new Map<string, string>()
    fc.assert(
      fc.property(tree, (description) => {
        const tidy = flattened(description)
        const words = descriptionInWords(tidy)
        const known = seen.get(words) ?? JSON.stringify(tidy)
        seen.set(words, known)
        expect(JSON.stringify(tidy)).toBe(known)
      }),
      { numRuns: runs(20_000) },
    )
    expect(seen.size).toBeGreaterThan(occurring(2_000))
  })
})

describe('who gets in, before and after', () => {
  const way = (
    names: ReadonlyArray<string>,
    more: Partial<AccessPath & AccessPath['demands'][number]> = {},
  ): AccessPath => {
    const { takesAnything = false, scopes = [], authorizations = [], objects = [] } = more
    return { demands: names.map((credential) => ({ credential, scopes, authorizations, objects })), takesAnything }
  }
  it.each<[what: string, before: AccessPath, after: AccessPath, change: Comparison]>([
    ['the same', way(['a']), way(['a']), 'same'],
    ['another credential', way(['a']), way(['b']), 'other'],
    ['one of two', way(['a', 'b']), way(['b']), 'opened'],
    ['one that was demanded twice', way(['a', 'a']), way(['a']), 'opened'],
    ['in another order', way(['a', 'b']), way(['b', 'a']), 'same'],
    ['a bad credential, too', way([]), way([], { takesAnything: true }), 'opened'],
    ['a scope less', way(['a'], { scopes: ['r', 'w'] }), way(['a'], { scopes: ['r'] }), 'opened'],
    ['another scope', way(['a'], { scopes: ['r', 'w'] }), way(['a'], { scopes: ['r', 'x'] }), 'other'],
    ['a condition less', way(['a'], { authorizations: ['f', 'f'] }), way(['a'], { authorizations: ['f'] }), 'opened'],
    ['an object less', way(['a'], { objects: ['note'] }), way(['a']), 'opened'],
  ])('%s: %o, %o: %s', (_what, before, after, change) => {
    expect(compareAccess([before], [after])).toBe(change)
    const back = { same: 'same', other: 'other', opened: 'closed', closed: 'opened' } as const
    expect(compareAccess([after], [before])).toBe(back[change])
  })

  it('of two credentials of one kind, each condition may be met by either', () => {
    const [plain, scoped] = [way(['a']), way(['a'], { scopes: ['r'] })].map(({ demands }) => demands)
    const both = (...parts: ReadonlyArray<AccessPath['demands'] | undefined>) => [
      { demands: parts.flatMap((one) => one ?? []), takesAnything: false },
    ]
    expect(compareAccess(both(plain, scoped), both(scoped, plain))).toBe('same')
    expect(compareAccess(both(plain, scoped), both(plain, plain))).toBe('opened')
  })
})
