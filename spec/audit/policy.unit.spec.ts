/** The policy file: its lines, the differences that a reviewer reads, and files that are refused. */
import Router, { type RouterInstance } from '@koa/router'
import * as E from 'fp-ts/lib/Either.js'
import { pipe } from 'fp-ts/lib/function.js'
import {
  allOf,
  also,
  apiApp,
  apiKeyHeader,
  authorize,
  authSettings,
  operation,
  optional,
  requireScopes,
  throttled,
  withAuth,
  type Authenticator,
} from 'koa-with-auth'
import { audit } from 'koa-with-auth/audit'
import { flatMap, lenient } from 'koa-with-auth/fp'
import { withPrincipal } from 'koa-with-auth/testing'
import { describe, expect, it } from 'vitest'
import { differencesOf } from '../../src/audit/Difference.js'
import { linesOf, policyText, readPolicy } from '../../src/audit/policy.js'
import { functionName } from '../../src/core/functionName.js'
import { lineFrom } from '../support/papers/policyLines.js'
import {
  bearer,
  changesOf,
  cookie,
  cors,
  guard,
  handle,
  key,
  linesFor,
  open,
  textsFor,
} from '../support/models/audits.js'
import { audited, auditWith, wayOf } from '../support/models/auditedOperation.js'
import { guardOf, addUnchecked } from '../support/models/levels.js'

const granted = () => []
const scoped = (...scopes: [string, ...string[]]) => pipe(bearer, requireScopes(scopes, { granted }))
const isStaff = (): boolean => true
const staff = pipe(bearer, authorize(isStaff))

const get = (auth: unknown, path = '/x') => new Router().get(path, guardOf(auth) as never, handle)
const post = (auth: unknown, settings = {}) => {
  const router = new Router()
  if (Object.keys(settings).length > 0) router.use(authSettings(settings) as never)
  return router.post('/x', guardOf(auth) as never, handle)
}

describe('a line says who may call', () => {
  it.each<[name: string, auth: unknown, who: string]>([
    ['one kind', bearer, 'who=[bearer]'],
    ['the same twice', [bearer, bearer], 'who=[bearer]'],
    ['alternatives', [bearer, key], 'who=[bearer]; who=[API key in header X-Key]'],
    ['all of several kinds', allOf({ bearer, key }), 'who=[bearer] [API key in header X-Key]'],
    ['anonymous callers are admitted', optional(bearer), 'who=[bearer]; who=anonymous'],
    ['bad credentials are admitted', lenient(bearer), 'who=[bearer]; who=anonymous with any credentials'],
    ['scopes', scoped('read', 'write'), 'who=[bearer | scope=read | scope=write]'],
    ['a function that authorizes', staff, `who=[bearer | authorized by ${functionName(isStaff)}]`],
    ['a function', isStaff, `who=[custom ${functionName(isStaff)}]`],
    ['anyone', null, 'who=public'],
  ])('%s', (_name, auth, who) => {
    expect(textsFor(get(auth))).toStrictEqual([`GET /x; ${who}; by=operation; csrf=not needed; docs=listed`])
  })

  it('a line says if no level decided, if the guard comes after its handler, and if the guard is for tests', () => {
    const undecided = 'GET /x; who=undecided (public); by=nothing; csrf=not needed; docs=listed'
    expect(textsFor(new Router().get('/x', handle))[0]).toBe(undecided)
    const late = addUnchecked(new Router(), '/x', handle, guardOf(bearer))
    expect(textsFor(late)[0]).toContain('; who=undecided (withAuth(...) comes')
    const tested = withPrincipal({})(get(bearer))
    expect(textsFor(tested)[0]).toContain('; who=public (withPrincipal, for tests); ')
    expect(audit(tested).operations).toMatchObject([{ access: 'public' }])
  })

  it('a name with a special character of the format is escaped', () => {
    const [one] = audit(get(bearer)).operations
    const named = (scheme: string) => linesOf({ operations: [{ ...one!, ways: [wayOf(scheme)] }], middleware: [] })
    for (const scheme of ['public', 'anonymous', 'a authorized by b', 'a, or b', 'a, and b', 'a with scopes b']) {
      expect(differencesOf(named(scheme), linesFor(get(null))).map(({ direction }) => direction)).toEqual(['opened'])
      expect(differencesOf(named(scheme), named('bearer')).map(({ direction }) => direction)).toEqual(['changed'])
    }
  })

  it.each([';', '[', ']', '|'])('%s in a credential, a scope, a condition or an object is escaped', (char) => {
    const [name, written] = [char, `\\u{${char.charCodeAt(0).toString(16)}}`].map((one) => `a ${one} b`)
    const demands = [{ credential: name!, scopes: [name!], authorizations: [name!], objects: [name!] }]
    const [line] = linesOf(auditWith([audited({ ways: [{ demands, takesAnything: false }] })]))
    expect(line?.who).toEqual([`[${written} | scope=${written} | authorized by ${written} | object=${written}]`])
  })
})

describe('each member of allOf is in brackets with its own conditions', () => {
  const [one, two] = ['One', 'Two'].map((paramName) => apiKeyHeader({ paramName, authenticate: () => ({ id: 1 }) }))
  const [a, b] = [one!, two!]
  const isOfStaff = authorize<object>(isStaff, { name: 'staff' })
  const reads = requireScopes<object>(['read'], { granted: () => [] })
  const counted = (of: Authenticator<object>) =>
    throttled({ limiter: { consume: async () => {}, reward: async () => {} } })(of)
  const changes = (was: unknown, is: unknown) => changesOf(get(was), get(is))

  it('in the file, in the table and in a difference', () => {
    const router = get(allOf({ a: isOfStaff(a), b }))
    const by = `authorized by ${functionName(isStaff, 'staff')}`
    const words = `(API key in header One ${by}), and API key in header Two`
    expect(textsFor(router)[0]).toContain(`who=[API key in header One | ${by}] [API key in header Two];`)
    expect(String(audit(router))).toContain(`all of (${words})`)
    expect(changes(allOf({ a: isOfStaff(a), b }), allOf({ a, b: isOfStaff(b) }))).toEqual([
      `changed: GET /x: was ${words}, is API key in header One, and (API key in header Two ${by})`,
    ])
  })

  it.each<[string, (of: Authenticator<object>) => Authenticator<object>]>([
    ['authorize', isOfStaff],
    ['requireScopes', reads],
    ['throttled', counted],
    ['flatMap', flatMap((user: object) => user)],
  ])('to move it is a difference, and so is to put it around the whole: %s', (_name, f) => {
    const all = [allOf([f(a), b]), allOf([a, f(b)]), f(allOf([a, b])), allOf([a, b])]
    const seen = all.map((auth) => linesFor(get(auth))[0]!.who.join())
    // two scopes of one member, and of all, are granted by other functions
    expect(new Set(seen).size).toBe(4)
    expect(changes(all[0], all[3])).toHaveLength(1)
  })

  it('to remove it is an opening, to add it a closing; nested groups, too', () => {
    expect(changes(allOf({ a: isOfStaff(a), b }), allOf({ a, b }))[0]).toMatch(/^opened/)
    expect(changes(allOf({ a, b }), allOf({ a, b: reads(b) }))[0]).toMatch(/^closed/)
    const nested = (inner: unknown, c: unknown) => allOf([inner as never, c as never])
    const group = allOf([a, b]) as never
    expect(changes(nested(isOfStaff(group), bearer), isOfStaff(nested(group, bearer) as never))).toHaveLength(1)
  })
})

it('a line says which level decided', () => {
  const router = withAuth(bearer)(new Router({ prefix: '/api' }))
  router.get('/a', handle).get('/b', guardOf(also(key)) as never, handle)
  expect(linesFor(router).map(({ by }) => by)).toEqual([['router /api'], ['router /api', 'operation']])
})

describe('a line says whether writes from other sites are refused', () => {
  const csrf = (router: RouterInstance) =>
    linesFor(router)
      .filter(({ operation: name }) => !name.startsWith('USE'))
      .map(({ csrf: [check], trusts }) => [check, ...trusts].join(' '))

  const trusting = { trustedOrigins: ['https://b.example', 'https://a.example'] }
  it.each<[name: string, router: () => RouterInstance, says: string]>([
    ['not needed: browsers do not send the credential by themselves', () => post(bearer), 'not needed'],
    ['not needed: the operation does not write', () => get(cookie), 'not needed'],
    ['not needed: anyone may write', () => post(null, { csrf: false }), 'not needed'],
    ['checked', () => post(cookie), 'checked'],
    ['checked: browsers send one of several credentials', () => post([bearer, cookie], { csrf: false }), 'off'],
    ['off', () => post(cookie, { csrf: false }), 'off'],
    ['checked, with trusted origins', () => post(cookie, trusting), 'checked https://a.example https://b.example'],
    ['off: then no origin is an exception', () => post(cookie, { ...trusting, csrf: false }), 'off'],
    ['not needed: nor is any origin then', () => post(bearer, trusting), 'not needed'],
  ])('%s', (_name, router, says) => {
    expect(csrf(router())).toEqual([says])
  })

  it('the settings of an apiApp count inside of it; the innermost count; those after the guard do not', () => {
    const api = apiApp({ auth: cookie, csrf: false, docs: false })
    api.post('/off', handle)
    const inner = apiApp({ auth: cookie, csrf: true, docs: false })
    inner.post('/on', handle)
    api.use('/inner', inner.routes())
    const beside = withAuth(cookie)(new Router()).post('/beside', handle)
    const outer = new Router().use(api.routes()).use(beside.routes())
    expect(csrf(outer)).toEqual(['checked', 'checked', 'off'])
    const late = withAuth(cookie)(new Router()).post('/x', authSettings({ csrf: false }), handle)
    expect(csrf(late)).toEqual(['checked'])
    late.use(authSettings({ csrf: false }) as never)
    expect(csrf(late)).toEqual(['checked'])
  })

  it('settings inside of an apiApp count more than its own, however many functions are between them and an operation', () => {
    const api = apiApp({ auth: cookie, csrf: false, docs: false })
    api.use(authSettings({ csrf: true }), cors).post('/x', handle)
    expect(csrf(new Router().use(api.routes()))).toEqual(['checked'])
  })

  it('if settings cover a part of an operation, the weaker ones count', () => {
    const router = withAuth(cookie)(new Router())
    router.use('/a', authSettings({ csrf: false }) as never)
    router.post('/:any', handle).post('/b', handle)
    expect(csrf(router)).toEqual(['off', 'checked'])
    const on = new Router()
    on.use(authSettings({ csrf: false }) as never).use('/a', authSettings({ csrf: true }) as never)
    on.post('/:any', guardOf(cookie) as never, handle).post('/a', guardOf(cookie) as never, handle)
    expect(csrf(on)).toEqual(['off', 'checked'])
    const origins = new Router().use(authSettings({ trustedOrigins: ['https://a.example'] }))
    origins.use('/a', authSettings({ trustedOrigins: ['https://b.example'] }))
    origins.post('/:any', withAuth(cookie), handle)
    expect(csrf(origins)).toEqual(['checked https://a.example https://b.example'])
  })
})

it('a line says whether the OpenAPI document lists the operation', () => {
  const api = apiApp({ auth: bearer })
  api.get('/a', operation({ undocumented: false }), handle).get('/b', operation({ undocumented: true }), handle)
  const docs = linesFor(api as never).map((line) => `${line.operation.slice(4)} ${line.docs.join()}`)
  expect(docs).toEqual(expect.arrayContaining(['/a listed', '/b hidden', '/docs page', '/openapi.json page']))
})

it('a line says what runs before the guard and which open operation answers first; middleware has its own line', () => {
  const router = new Router().use(cors).use((_ctx, next) => next())
  router.get('/:id', open, handle).get('/me', cors, guard, handle)
  expect(textsFor(router)).toStrictEqual([
    'USE /*; who=unguarded; runs=cors',
    expect.stringMatching(/^USE \/\*; who=unguarded; runs=function without a name [0-9a-f]{12}$/),
    'GET /:id; who=public; by=operation; csrf=not needed; docs=listed',
    'GET /me; who=[bearer]; by=operation; csrf=not needed; docs=listed; before=cors; first=GET /:id',
  ])
})

it('lines are sorted by path, so the order of registration does not matter', () => {
  const one = get(bearer)
    .post('/x', open, handle)
    .get('/a', guardOf(key) as never, handle)
  const other = new Router().get('/a', guardOf(key) as never, handle)
  other.post('/x', open, handle).get('/x', guard, handle)
  expect(textsFor(one)).toStrictEqual(textsFor(other))
  expect(textsFor(one).map((line) => line.split(';')[0])).toStrictEqual(['GET /a', 'GET /x', 'POST /x'])
})

describe('the differences of two policies', () => {
  const level = (auth: unknown) => guardOf(auth)(new Router({ prefix: '/p' }))
  const by = `authorized by ${functionName(isStaff)}`
  const none = () => new Router()
  const inFront = (f: unknown) => none().get('/x', f as never, guard, handle)
  const [off, on] = [{ csrf: false }, { csrf: true }]
  const trusting = { trustedOrigins: ['https://a.example'] }
  const inherited = (auth: unknown) => level(auth).get('/x', handle)
  const [undecided, inside] = [none().get('/x', handle), level(null).get('/x', guard, handle)]
  it.each<[direction: string, text: string, was: RouterInstance, is: RouterInstance]>([
    ['opened', `was bearer ${by}, is public`, get(staff), get(null)],
    ['opened', 'was bearer, is bearer, or anonymous', get(bearer), get(optional(bearer))],
    ['opened', 'was bearer, is bearer, or anonymous with any credentials', get(bearer), get(lenient(bearer))],
    ['opened', 'was bearer, is bearer, or API key in header X-Key', get(bearer), get([bearer, key])],
    ['opened', 'was bearer, and API key in header X-Key, is bearer', get(allOf({ bearer, key })), get(bearer)],
    ['opened', `was bearer ${by}, is bearer`, get(staff), get(bearer)],
    ['opened', 'was bearer with scopes a b, is bearer with scopes a', get(scoped('a', 'b')), get(scoped('a'))],
    ['opened', 'was bearer with scopes a, is bearer', get(scoped('a')), get(bearer)],
    ['closed', 'was bearer with scopes a, is bearer with scopes a b', get(scoped('a')), get(scoped('a', 'b'))],
    ['changed', 'was bearer with scopes a, is bearer with scopes b', get(scoped('a')), get(scoped('b'))],
    ['closed', 'was public, is bearer', get(null), get(bearer)],
    ['changed', 'was bearer, is API key in header X-Key', get(bearer), get(key)],
    ['changed', 'was public, is undecided (public); decided by: was operation, is nothing', get(null), undecided],
    ['changed', 'decided by: was router /p, is operation', inherited(bearer), inside],
    ['opened', 'was absent, is public', none(), get(null)],
    ['opened', 'was absent, is bearer, or anonymous', none(), get(optional(bearer))],
    ['changed', 'was absent, is bearer', none(), get(bearer)],
    ['opened', 'was absent, is API key in cookie sid, csrf is off', none(), post(cookie, off)],
    ['closed', 'was public, is gone', get(null), none()],
    ['opened', 'csrf was checked, is off', post(cookie, { realm: 'a' }), post(cookie, off)],
    ['closed', 'csrf was off, is checked', post(cookie, off), post(cookie, on)],
    ['opened', 'csrf was checked, is checked except from https://a.example', post(cookie), post(cookie, trusting)],
    ['changed', 'docs was listed, is hidden', get(bearer), inFront(operation({ undocumented: true }))],
    ['closed', 'was public, is bearer; decided by: was router /p, is operation', inherited(null), inside],
    ['opened', 'was API key in cookie sid, is public; csrf was off, is not needed', post(cookie, off), post(null, on)],
    ['opened', 'is now before its guard cors', get(bearer), inFront(cors)],
  ])('%s: %s', (direction, text, was, is) => {
    // middleware with settings is not compared
    const changes = changesOf(was, is).filter((change) => !change.includes(': USE '))
    expect(changes.map((change) => change.replace(/: [A-Z]+ \/\S*(?=:)/, ''))).toEqual([`${direction}: ${text}`])
  })

  it('removing a function that runs after the guard is an opening, because it may refuse; adding one is not', () => {
    const then = new Router().get('/x', withAuth(bearer, { then: [cors] }), handle)
    const line = 'GET /x; who=[bearer]; by=operation; csrf=not needed; docs=listed; behind=cors'
    expect(textsFor(then)).toStrictEqual([line])
    expect(changesOf(then, get(bearer))).toEqual(['opened: GET /x: is no longer behind its guard cors'])
    expect(changesOf(get(bearer), then)).toEqual(['changed: GET /x: is now behind its guard cors'])
  })

  const lines = (...fields: string[]) =>
    fields.map((one) => lineFrom(`GET ${one.replace(';', '; who=')}; by=operation; csrf=not needed; docs=listed`)!)
  const [both, one, shadowed, fewer] = ['/x;[a]; who=[b]', '/x;[a]', '/x;[a]; first=GET /y', '/y;[a | scope=s]']
  it.each<[name: string, direction: string, was: ReadonlyArray<string>, is: ReadonlyArray<string>]>([
    ['fewer callers, and one more function behind the guard', 'closed', [both], [`${one}; behind=f`]],
    ['fewer callers, and another host', 'changed', [both], [`${one}; host=h`]],
    ['fewer callers, and one function less behind the guard', 'opened', [`${both}; behind=f`], [one]],
    ['first: an operation of the same callers', 'changed', ['/x;[a]', '/y;[a]'], ['/x;[a]; first=GET /y', '/y;[a]']],
    ['first: one of fewer', 'changed', [one, fewer], [shadowed, fewer]],
    ['first: one of others', 'opened', ['/x;[a]', '/y;[b]'], ['/x;[a]; first=GET /y', '/y;[b]']],
    ['first: an open one', 'opened', ['/x;[a]', '/y;public'], ['/x;[a]; first=GET /y', '/y;public']],
    ['first: one that the file does not have', 'opened', ['/x;[a]'], ['/x;[a]; first=GET /y']],
    ['first, before an open operation', 'changed', ['/x;public', '/y;[a]'], ['/x;public; first=GET /y', '/y;[a]']],
    ['before its guard, of an open operation', 'changed', ['/x;public'], ['/x;public; before=f']],
    ['bad credentials are admitted, too', 'opened', ['/x;[a]'], ['/x;[a] anonymous with any credentials']],
    ['no longer first: one of the same', 'closed', ['/x;[a]; first=GET /y', '/y;[a]'], ['/x;[a]', '/y;[a]']],
    ['no longer first: one of more', 'closed', ['/x;[a]; first=GET /y', '/y;public'], ['/x;[a]', '/y;public']],
    ['no longer first: one of others', 'changed', ['/x;[a]; first=GET /y', '/y;[b]'], ['/x;[a]', '/y;[b]']],
    ['no longer first: one of fewer', 'opened', [shadowed, fewer], [one, fewer]],
    ['no longer before an open operation', 'changed', ['/x;public; before=f'], ['/x;public']],
    ['no longer before a guard', 'closed', ['/x;[a]; before=f'], ['/x;[a]']],
  ])('%s: %s', (_name, direction, was, is) => {
    const found = differencesOf(lines(...was), lines(...is))
    expect(found.map((one) => [one.operation, one.direction])).toEqual([['GET /x', direction]])
  })

  it('two operations with the same name are two lines', () => {
    const once = get(bearer)
    const twice = get(bearer).get('/x', open, handle)
    expect(changesOf(twice, twice)).toEqual([])
    expect(changesOf(once, twice)).toEqual(['opened: GET /x: was absent, is public'])
  })
})

describe('a policy file', () => {
  const bytes = (text: string) => new TextEncoder().encode(text)
  const lines = linesFor(get(bearer).get('/y', open, handle))
  const written = policyText(lines)

  it('begins with its format, and has a line for each operation', () => {
    expect(written.split('\n')).toStrictEqual([
      '# koa-with-auth policy 2',
      expect.stringMatching(/^# Who may call what/),
      'GET /x; who=[bearer]; by=operation; csrf=not needed; docs=listed',
      'GET /y; who=public; by=operation; csrf=not needed; docs=listed',
      '',
    ])
  })

  it('may have CRLF, comments, empty lines, a byte order mark and no newline at its end', () => {
    for (const same of [
      written.replaceAll('\n', '\r\n'),
      `\uFEFF${written}`,
      written.trimEnd(),
      written.replace('GET /y', '\n# why it is public\nGET /y'),
    ]) {
      const read = readPolicy(bytes(same))
      expect(E.isRight(read) && differencesOf(read.right, lines)).toEqual([])
    }
  })

  const begins = 'line 1: a policy file begins with "# koa-with-auth policy 2"'
  const noLine = 'line 4 is not a line of a policy file'
  it.each<[name: string, text: string, why: string]>([
    ['empty', '', begins],
    ['of another version', written.replace('policy 2', 'policy 1'), begins],
    ['with a merge conflict', written.replace('GET /y', '<<<<<<< HEAD\nGET /y'), noLine],
    ['with a line that is cut off', written.slice(0, -12), noLine],
    ['with a control character', written.replace('GET /y', 'GET /\u202ey'), noLine],
  ])('%s: is refused, and the message says where', (_name, text, why) => {
    expect(readPolicy(bytes(text))).toStrictEqual(E.left(why))
  })

  it('is refused if it is not UTF-8', () => {
    expect(readPolicy(new Uint8Array([0x23, 0xff, 0xfe]))).toStrictEqual(E.left('is not UTF-8'))
  })

  const whole = 'GET /x; who=[bearer]; by=operation; csrf=not needed; docs=listed'
  it.each([
    'GET /x',
    whole.replace('GET ', ''),
    whole.replace('who=[bearer]; ', ''),
    whole.replace('[bearer]', 'bearer'),
    whole.replace('by=operation; ', ''),
    whole.replace('operation', ''),
    whole.replace('csrf=', 'csrf=off; csrf='),
    whole.replace('not needed', 'maybe'),
    whole.replace('; docs=listed', ''),
    whole.replace('listed', 'maybe'),
    whole.replace('csrf=not needed', 'csrf not needed'),
    `${whole}; more=x`,
    `${whole}; tokens=https://login.example`,
    `${whole}; unchecked=id`,
    'USE /*; runs=cors',
    'USE /*; who=unguarded; runs=cors; runs=go',
    'USE /*; who=unguarded; runs=cors; by=operation',
    'USE /*; who=unguarded; runs=cors; docs=listed',
  ])('is refused if it has the line %s', (text) => {
    expect(lineFrom(whole)).toBeDefined()
    expect(lineFrom(text)).toBeUndefined()
  })
})

it('comparing many lines reads each of them a few times', () => {
  let reads = 0
  const [line] = linesFor(get(bearer))
  const all = Array.from({ length: 500 }, (_, at) => ({
    ...line!,
    get operation() {
      reads++
      return `GET /x${at}`
    },
  }))
  expect(differencesOf([], all)).toHaveLength(500)
  expect(reads).toBeLessThan(20 * 500)
})
