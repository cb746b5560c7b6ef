/**
 * Who may touch `:id`: `owned` looks an object up for a caller who is known, and answers alike for what is not there and for what is
 * not for the caller.
 */
import Router from '@koa/router'
import { either as E, option as O, taskEither as TE } from 'fp-ts'
import { pipe } from 'fp-ts/lib/function.js'
import Koa, { type Request } from 'koa'
import {
  also,
  allOf,
  anyOf,
  apiKeyCookie,
  apiKeyHeader,
  AuthError,
  authorize,
  authSettings,
  httpBearer,
  onError,
  optional,
  owned,
  unchecked,
  UnavailableError,
  withAuth,
  type Authenticator,
} from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { running } from '../support/models/behavior.js'
import { mockRequest } from 'koa-with-auth/testing'
import { recordsOf } from '../support/runs/eventRecords.js'
import { pollute } from '../support/runs/pollute.js'
import { listen } from '../support/servers/server.js'

interface User {
  readonly name: string
}
interface Note {
  readonly owner: string
  readonly text: string
}

const notes = new Map<string, Note>([
  ['n1', { owner: 'anna', text: 'milk' }],
  ['n2', { owner: 'bert', text: 'secret' }],
  ['a/b', { owner: 'anna', text: 'slash' }],
])
const user = httpBearer({ authenticate: (_request, token): User | false => token !== 'wrong' && { name: token } })
const as = (name: string) => ({ headers: { authorization: `Bearer ${name}` } })

// A rule that counts its look-ups
const counted = (settings: Partial<Parameters<typeof owned<string, User, unknown>>[1]> = {}) => {
  const asked: string[] = []
  const note = owned('note', {
    param: 'id',
    find: (id: string, _user: User): unknown => {
      asked.push(id)
      return notes.get(id)
    },
    allow: (found: unknown, one: User) => (found as Note).owner === one.name,
    ...settings,
  })
  return { asked, note }
}

const served = (build: (router: Router, seen: unknown[]) => void, above: (app: Koa) => void = () => {}) => {
  const seen: unknown[] = []
  return running((app) => {
    above(app)
    const router = new Router()
    build(router, seen)
    app.use(router.routes())
  }).then((running) => ({ ...running, seen }))
}
const serving = (a: Authenticator<unknown>, above?: (app: Koa) => void, path = '/notes/:id') =>
  served((router, seen) => {
    router.all(path, withAuth(a), (ctx) => {
      seen.push({ auth: ctx.request.auth, objects: Reflect.get(ctx.request, 'objects') })
      ctx.body = { ok: true }
    })
  }, above)

/** The answer to Anna, who asks for a note, and what the handler saw. */
const answerTo = async (settings: Parameters<typeof counted>[0], above?: (app: Koa) => void) => {
  const { ask, seen } = await serving(pipe(user, counted(settings).note), above)
  const { status } = await ask('/notes/n1', as('anna'))
  return { status, seen }
}

describe('an object of the caller', () => {
  it('is found once, and the handler has it beside the principal, in an object without a prototype', async () => {
    const { asked, note } = counted()
    const { ask, seen } = await serving(pipe(user, note))
    expect((await ask('/notes/n1', as('anna'))).status).toBe(200)
    expect(asked).toStrictEqual(['n1'])
    const [{ auth, objects }] = seen as [{ auth: unknown; objects: object }]
    expect(auth).toStrictEqual({ name: 'anna' })
    expect({ ...objects }).toStrictEqual({ note: notes.get('n1') })
    expect(Object.getPrototypeOf(objects)).toBe(null)
  })

  it('is named by the decoded parameter', async () => {
    const { asked, note } = counted()
    const { ask } = await serving(pipe(user, note))
    expect((await ask('/notes/a%2Fb', as('anna'))).status).toBe(200)
    expect((await ask('/notes/%6E1', as('anna'))).status).toBe(200)
    expect(asked).toStrictEqual(['a/b', 'n1'])
  })

  it.each([
    ['an empty object', {}],
    ['an empty array', []],
    ['a string', 'x'],
    ['a number', 1],
    ['an object with a _tag that is data', { _tag: 'invalid', id: 1 }],
    ['an object with a method next', { next: () => 1 }],
    ['a date', new Date(0)],
    ['a promise of an empty object', Promise.resolve({})],
  ])('can be %s', async (_what, object) => {
    const answer = await answerTo({ find: () => object, allow: () => true })
    expect(answer).toMatchObject({ status: 200, seen: [{ objects: { note: await object } }] })
  })

  it.each([
    ['an Option', O.some(7)],
    ['an Either', E.right(7)],
    ['a TaskEither', TE.right(7)],
  ])('is unwrapped from %s', async (_what, answer) => {
    const found = await answerTo({ find: () => answer, allow: undefined })
    expect(found).toMatchObject({ status: 200, seen: [{ objects: { note: 7 } }] })
  })
})

describe('an object that is not there, and one that is not for the caller', () => {
  it('are a 404 as problem details, without a challenge', async () => {
    const { ask } = await serving(pipe(user, counted().note))
    expect(await ask('/notes/n2', as('anna'))).toMatchObject({
      status: 404,
      challenges: [],
      body: { type: 'about:blank', title: 'Not Found', status: 404, detail: 'Not Found' },
      headers: { 'content-type': 'application/problem+json', 'cache-control': 'no-store' },
    })
  })

  it('differ with refuse: 403', async () => {
    const { ask, seen } = await serving(pipe(user, counted({ refuse: 403 }).note))
    expect((await ask('/notes/n2', as('anna'))).status).toBe(403)
    expect((await ask('/notes/n3', as('anna'))).status).toBe(404)
    expect(seen).toHaveLength(0)
  })

  it.each([
    ['undefined', undefined],
    ['null', null],
    ['false', false],
    ['0', 0],
    ['an empty string', ''],
    ['a promise of nothing', Promise.resolve()],
    ['None', O.none],
    ['a Left', E.left('no')],
    ['a failure', AuthError.invalid],
    ['a prototype', Object.prototype],
    ['an inherited method', Object.prototype.toString],
  ])('%s is not found', async (_what, answer) => {
    expect(await answerTo({ find: () => answer, allow: undefined })).toEqual({ status: 404, seen: [] })
  })

  it.each([
    ['false', () => false],
    ['a promise of false', async () => false],
    ['undefined', () => undefined],
    ['1', () => 1],
    ['a string', () => 'true'],
    ['an object', () => ({})],
    ['Some(true)', () => O.some(true)],
    ['a function', () => () => E.right(true)],
  ])('allow that returns %s does not allow', async (_what, allow) => {
    // Safe: a program without types could write this
    expect(await answerTo({ allow: allow as () => boolean })).toEqual({ status: 404, seen: [] })
  })
})

describe('nothing is looked up', () => {
  it('for an anonymous caller, and for a wrong credential', async () => {
    const { asked, note } = counted()
    const { ask } = await serving(pipe(user, note))
    expect(await ask('/notes/n1')).toMatchObject({ status: 401, challenges: ['Bearer realm="api"'] })
    expect((await ask('/notes/n1', as('wrong'))).status).toBe(401)
    expect(asked).toHaveLength(0)
  })

  it('for a write that another site made a browser send', async () => {
    const { asked, note } = counted()
    const cookie = apiKeyCookie({ paramName: 'key', authenticate: (_request, key): User => ({ name: key }) })
    const { ask } = await serving(pipe(cookie, note))
    const headers = { cookie: 'key=anna', 'sec-fetch-site': 'cross-site', origin: 'https://other.example' }
    expect((await ask('/notes/n1', { method: 'POST', headers })).status).toBe(403)
    expect(asked).toHaveLength(0)
    expect((await ask('/notes/n1', { method: 'POST', headers: { cookie: 'key=anna' } })).status).toBe(200)
  })

  it('for an optional parameter that is not in the path, also if another route had one of its name', async () => {
    const { asked, note } = counted()
    const { ask } = await served((router) => {
      router.get('/{:id}', withAuth(null), (_ctx, next) => next())
      router.get('/notes{/:id}', withAuth(pipe(user, note)), (ctx) => {
        ctx.body = 'open'
      })
    })
    expect((await ask('/notes', as('anna'))).status).toBe(404)
    expect(asked).toHaveLength(0)
    expect((await ask('/notes/n1', as('anna'))).status).toBe(200)
  })
})

describe('what cannot be looked up', () => {
  class Down extends Error {}
  const raise = (error: unknown) => (): never => {
    throw error
  }

  it.each<[string, number, object]>([
    ['find that throws', 500, { find: raise(new Error('bug')) }],
    ['find that rejects', 500, { find: () => Promise.reject(new Error('bug')) }],
    ['find that returns an Error', 500, { find: () => new Error('bug') }],
    ['allow that throws', 500, { allow: raise(new Error('bug')) }],
    ['allow that rejects', 500, { allow: () => Promise.reject(new Error('bug')) }],
    ['an UnavailableError of find', 503, { find: raise(new UnavailableError('down')) }],
    ['an UnavailableError of allow', 503, { allow: async () => raise(new UnavailableError('down'))() }],
    ['AuthError.unavailable() of find', 503, { find: () => AuthError.unavailable(7) }],
    ['AuthError.unavailable() that is thrown', 503, { find: raise(AuthError.unavailable()) }],
    ['AuthError.unavailable() of allow', 503, { allow: () => AuthError.unavailable() }],
    ['an exception with a handler', 507, { find: raise(new Down()) }],
  ])('%s: %d, and no handler ran', async (_what, status, settings) => {
    const handling = authSettings({ onError: [onError(Down, () => ({ status: 507 }))] })
    expect(await answerTo(settings, (app) => app.use(handling))).toEqual({ status, seen: [] })
  })

  it('a look-up that does not settle within the time limit is a 503', async () => {
    const limiting = authSettings({ timeout: 5 })
    const answer = await answerTo({ find: () => new Promise(() => {}) }, (app) => app.use(limiting))
    expect(answer).toEqual({ status: 503, seen: [] })
  })
})

describe('several objects', () => {
  const comments = new Map([['c1', { note: 'n1' }]])
  const comment = owned('comment', {
    param: 'comment',
    find: async (id, _user: User, request: Request & { readonly objects: { readonly note: unknown } }) =>
      (request.objects.note as Note).text === 'milk' && comments.get(id),
  })

  it('are looked up in order, and a later one sees the earlier ones', async () => {
    const { asked, note } = counted()
    const a = pipe(user, note, comment)
    const { ask, seen } = await serving(a, undefined, '/notes/:id/comments/:comment')
    expect((await ask('/notes/n1/comments/c1', as('anna'))).status).toBe(200)
    expect(seen).toMatchObject([{ objects: { note: { text: 'milk' }, comment: { note: 'n1' } } }])
    expect((await ask('/notes/n2/comments/c1', as('anna'))).status).toBe(404)
    expect((await ask('/notes/n1/comments/c2', as('anna'))).status).toBe(404)
    expect(asked).toStrictEqual(['n1', 'n2', 'n1'])
  })

  it('are seen by a condition after them', async () => {
    const short = authorize(
      (_user: User, request) => (Reflect.get(request, 'objects') as { note: Note }).note.text === 'milk',
    )
    const { ask } = await serving(pipe(user, counted().note, short))
    expect((await ask('/notes/n1', as('anna'))).status).toBe(200)
    expect((await ask('/notes/a%2Fb', as('anna'))).status).toBe(403)
  })

  it('of one name in one operation are a TypeError, but not in alternatives', () => {
    const { note } = counted()
    expect(() => withAuth(pipe(user, note, note))).toThrow(
      new TypeError("owned('note') is in one operation twice; give each object its own name"),
    )
    const key = apiKeyHeader({ authenticate: (_request, name): User => ({ name }) })
    expect(() => withAuth(allOf([pipe(user, note), pipe(key, note)]))).toThrow(TypeError)
    expect(() => withAuth([pipe(user, note), pipe(key, note)])).not.toThrow()
  })
})

it('R09 an inherited parameter was not sent', () => {
  const request = mockRequest({ fields: [['Authorization', 'Bearer anna']] })
  Object.assign(request.ctx, { params: {} })
  pollute({ id: 'n1' })
  const found = pipe(user, owned('note', { param: 'id', find: (id: string) => id })).evaluate(request)
  expect(found).toMatchObject(E.left({ _tag: 'notFound' }))
})

describe('in lists', () => {
  const key = apiKeyHeader({
    paramName: 'X-API-Key',
    authenticate: (_request, name): User | false => name === 'admin' && { name },
  })

  it('an alternative that does not find it leaves the decision to the next one, and nothing of it is seen', async () => {
    const { note } = counted()
    const team = owned('team', { param: 'id', find: () => 'team' as const })
    const { ask, seen } = await serving(anyOf([pipe(user, team, note), key]))
    const admin = { headers: { ...as('anna').headers, 'x-api-key': 'admin' } }
    expect((await ask('/notes/n2', admin)).status).toBe(200)
    expect(seen).toStrictEqual([{ auth: { name: 'admin' }, objects: undefined }])
    expect((await ask('/notes/n2', as('anna'))).status).toBe(404)
    expect((await ask('/notes/n2')).status).toBe(401)
  })

  it('the record has the object that an alternative found, although the next one finds none', async () => {
    const none = owned('none', { param: 'id', find: () => undefined })
    const records = recordsOf('decision', ({ route }) => route === '/found/:id')
    const list = anyOf([pipe(user, counted().note), pipe(user, none)])
    const { ask } = await serving(list, undefined, '/found/:id')
    expect((await ask('/found/n2', as('anna'))).status).toBe(404)
    await expect.poll(() => records).toMatchObject([{ object: 'note', found: true }])
  })

  it('optional around it admits anonymous callers, who look nothing up; inside it is a TypeError', async () => {
    const { asked, note } = counted()
    const { ask, seen } = await serving(optional(pipe(user, note)))
    expect((await ask('/notes/n2')).status).toBe(200)
    expect((await ask('/notes/n2', as('anna'))).status).toBe(404)
    expect(asked).toStrictEqual(['n2'])
    expect(seen).toStrictEqual([{ auth: undefined, objects: undefined }])
    expect(() => pipe(optional(user), note as never)).toThrow(
      new TypeError("owned('note')(a): a is optional; write optional(owned('note')(a))"),
    )
  })
})

describe('two routes that match one URL', () => {
  it('each have their own objects, and the outer one gets its own back', async () => {
    const seen: unknown[] = []
    const objectsOf = (ctx: { readonly request: object }) => ({ ...(Reflect.get(ctx.request, 'objects') as object) })
    const { note } = counted()
    const word = owned('word', { param: 'word', find: (id: string) => id.toUpperCase() })
    const { ask } = await served((router) => {
      router.get('/notes/:id', withAuth(pipe(user, note)), async (ctx, next) => {
        seen.push(objectsOf(ctx))
        await next()
        seen.push(objectsOf(ctx))
      })
      router.get('/notes/:word', withAuth(pipe(user, word)), async (ctx, next) => {
        seen.push(objectsOf(ctx))
        await next()
      })
      router.get('/notes/:any', withAuth(null), (ctx) => {
        seen.push(objectsOf(ctx))
        ctx.body = 'ok'
      })
    })
    expect((await ask('/notes/n1', as('anna'))).status).toBe(200)
    expect(seen).toStrictEqual([{ note: notes.get('n1') }, { word: 'N1' }, {}, { note: notes.get('n1') }])
  })
})

describe('on a router', () => {
  const teams = new Map([['t1', { members: ['anna'] }]])
  const team = owned('team', {
    param: 'team',
    find: (id: string) => teams.get(id),
    allow: ({ members }, one: User) => members.includes(one.name),
  })
  const answering = (seen: unknown[]) => (ctx: { readonly request: object; body: unknown }) => {
    seen.push(Object.keys((Reflect.get(ctx.request, 'objects') as object | undefined) ?? { none: 1 }))
    ctx.body = 'ok'
  }

  it('it holds for each operation; one that decides itself replaces it, and also adds to it', async () => {
    const { note } = counted()
    const { ask, seen } = await served((router, seen) => {
      const inner = withAuth(pipe(user, team))(new Router({ prefix: '/teams/:team' }))
      inner.get('/members', answering(seen))
      inner.get('/open', withAuth(null), answering(seen))
      inner.get('/alone', withAuth(user), answering(seen))
      inner.get('/notes/:id', withAuth(also(pipe(user, note))), answering(seen))
      router.use(inner.routes())
    })
    for (const path of ['members', 'alone', 'open', 'notes/n1']) {
      expect((await ask(`/teams/t1/${path}`, as('anna'))).status).toBe(200)
    }
    expect(seen).toStrictEqual([['team'], ['none'], ['none'], ['team', 'note']])
    expect((await ask('/teams/t1/members', as('bert'))).status).toBe(404)
    expect((await ask('/teams/t2/members', as('anna'))).status).toBe(404)
    expect((await ask('/teams/t1/open')).status).toBe(200)
  })

  it('the parameter may come with the path where it is mounted, also twice', async () => {
    const { ask, seen } = await served((router, seen) => {
      const inner = withAuth(pipe(user, team))(new Router())
      inner.get('/members', answering(seen))
      router.use('/teams/:team', inner.routes())
      router.use('/groups/:team', inner.routes())
    })
    expect((await ask('/teams/t1/members', as('anna'))).status).toBe(200)
    expect((await ask('/groups/t1/members', as('anna'))).status).toBe(200)
    expect((await ask('/groups/t2/members', as('anna'))).status).toBe(404)
    expect(seen).toHaveLength(2)
  })

  it('a parameter of a prefix that the path has again is a TypeError: the object would be another one', async () => {
    const inner = withAuth(pipe(user, team))(new Router({ prefix: '/teams/:team' }))
    let ran = 0
    inner.get('/notes/:team', () => void (ran += 1))
    expect(() => new Koa().use(inner.routes())).toThrow(
      new TypeError(
        "GET /teams/:team/notes/:team: owned('team') reads the parameter :team, which the path has twice, so only the last one would be read; give each its own name",
      ),
    )
    // an application that does not read what it mounts
    const app = new Koa()
    app.silent = true
    const { url } = await listen(app.use((ctx, next) => inner.routes()(ctx as never, next)))
    expect((await fetch(`${url}/teams/t2/notes/t1`, as('anna'))).status).toBe(500)
    expect(ran).toBe(0)
  })

  const message =
    "GET /members: owned('team') reads the parameter :team, which the path does not have; write it into the path or a prefix, or guard the operation without it: withAuth(a)"

  it('an operation without the parameter is a TypeError where its router is mounted in an application', () => {
    const inner = withAuth(pipe(user, team))(new Router())
    inner.get('/members', () => {})
    expect(() => new Koa().use(inner.routes())).toThrow(new TypeError(message))
    const outer = new Router().use('/teams', inner.routes())
    expect(() => new Koa().use(outer.routes())).toThrow(TypeError)
    const plain = new Router().get('/members', withAuth(pipe(user, team)), () => {})
    expect(() => new Koa().use(plain.routes())).toThrow(new TypeError(message))
  })

  it('a later one is a TypeError when it is registered', () => {
    const inner = withAuth(pipe(user, team))(new Router())
    new Koa().use(inner.routes())
    expect(() => inner.get('/members', () => {})).toThrow(new TypeError(message))
    expect(() => inner.get('/teams/:team', () => {})).toThrow(new TypeError(message))
    inner.stack.splice(0)
    expect(() => inner.get('/members', () => {})).toThrow(new TypeError(message))
  })

  it('one that was mounted later is a TypeError at the next registration', () => {
    const outer = new Router()
    new Koa().use(outer.routes())
    outer.use(withAuth(pipe(user, team))(new Router().get('/members', () => {})).routes())
    expect(() => outer.get('/', () => {})).toThrow(new TypeError(message))
  })

  it('a registration does not check again what was checked before it', () => {
    const inner = withAuth(pipe(user, team))(new Router().get('/teams/:team', () => {}))
    new Koa().use(inner.routes())
    let reads = 0
    const { paramNames } = inner.stack[0]!
    Object.defineProperty(inner.stack[0], 'paramNames', {
      get: () => {
        reads++
        return paramNames
      },
    })
    for (let at = 0; at < 3; at++) inner.get(`/teams/:team/${at}`, () => {})
    expect(reads).toBe(0)
    expect(() => new Koa().use(inner.routes())).not.toThrow()
    expect(reads).toBeGreaterThan(0)
  })

  it('a RegExp is a TypeError when it is registered', () => {
    const reason = /^GET \/\^\\\/teams\/: owned\('team'\) reads the parameter :team, and the path is a RegExp/
    const inner = withAuth(pipe(user, team))(new Router())
    expect(() => inner.get(/^\/teams/, () => {})).toThrow(reason)
    expect(() => inner.get(['/teams/:team', /^\/teams/], () => {})).toThrow(TypeError)
    expect(() => new Router().get(/^\/teams/, withAuth(pipe(user, team)), () => {})).toThrow(TypeError)
  })

  it('what only a request shows is a 500', async () => {
    const { ask, errors } = await running((app) => {
      const inner = new Router().get('/members', withAuth(pipe(user, team)), () => {})
      const routes = inner.routes()
      app.use((ctx, next) => routes(ctx as never, next))
    })
    expect((await ask('/members', as('anna'))).status).toBe(500)
    expect(errors).toMatchObject([{ code: 'ERR_GUARD_MISPLACED' }])
  })
})

describe('unchecked', () => {
  it('changes no decision', async () => {
    const { ask, seen } = await serving(pipe(user, unchecked('id', 'the handler checks it')))
    expect((await ask('/notes/n2', as('anna'))).status).toBe(200)
    expect((await ask('/notes/n2')).status).toBe(401)
    expect(seen).toStrictEqual([{ auth: { name: 'anna' }, objects: undefined }])
  })

  it('of a parameter that the path does not have is a TypeError where its router is mounted, and for each route of a level', () => {
    const slug = unchecked('slug', 'all members read all articles')
    const mount = (path: string) => () => new Koa().use(new Router().get(path, withAuth(user, slug), () => {}).routes())
    expect(mount('/articles/:slug')).not.toThrow()
    expect(mount('/articles/:id')).toThrow(
      "GET /articles/:id: unchecked('slug') is about the parameter :slug, which the path does not have",
    )
    const level = withAuth(user, slug)(new Router()).get('/articles', () => {})
    expect(() => new Koa().use(level.routes())).toThrow(TypeError)
  })
})

describe('wrong options', () => {
  const find = () => 1
  it.each<[string, () => unknown]>([
    ['no find', () => owned('note', { param: 'id' } as never)],
    ['no parameter', () => owned('note', { find } as never)],
    ['a parameter with its colon', () => owned('note', { param: ':id', find })],
    ['another status', () => owned('note', { param: 'id', find, refuse: 401 as never })],
    ['an unknown option', () => owned('note', { param: 'id', find, load: find } as never)],
    ['a name that is no word', () => owned('', { param: 'id', find })],
    ['a long hook', () => owned('note', { param: 'id', find: ((_a: 1, _b: 1, _c: 1, _d: 1) => 1) as never })],
    ['a generator', () => owned('note', { param: 'id', find: function* () {} })],
    ['unchecked without a reason', () => unchecked('id', '')],
    ['unchecked with one word', () => unchecked('id', 'public')],
    ['unchecked with the colon', () => unchecked(':id', 'all members read it')],
  ])('%s is a TypeError', (_what, make) => {
    expect(make).toThrow(TypeError)
  })
})
