/** `expectIsolated`: it finds what one user can learn about the objects of another, and reports nothing else. */
import Router from '@koa/router'
import Koa, { type Context } from 'koa'
import { httpBearer, owned, withAuth, unchecked } from 'koa-with-auth'
import { expectIsolated, withBearer, type IsolatedOptions } from 'koa-with-auth/testing'
import { describe, expect, it } from 'vitest'
import { violationsOf } from '../support/models/brokenLaws.js'

interface User {
  readonly name: string
}
interface Order {
  readonly owner: string
  readonly team: string
  text: string
}
type Params = Readonly<Record<string, string>>

const user = httpBearer({ authenticate: (_request, token): User | false => token !== 'wrong' && { name: token } })

/** The kinds of leaks. */
const leaks = [
  'GET reads it',
  'PUT changes it',
  'PATCH changes it',
  'DELETE removes it',
  'a 403 says that it exists',
  'another body says that it exists',
  'a header says that it exists',
  'HEAD says that it exists',
  'HEAD has the length of what exists',
  'the team is not looked at',
  'the list has all ids',
  'the other case is another way to it',
  'it is decoded twice',
  'blanks and dots are cut off',
  'the owner is looked up by the path as it was sent',
] as const

/** A leak, or none. */
type Leak = (typeof leaks)[number] | undefined

/** A shop whose operations are right, or with this leak. */
const shop = (leak?: Leak): Koa => {
  const teams = new Map([
    ['team-a', ['anna']],
    ['team-b', ['bert']],
  ])
  const orders = new Map<string, Order>([
    ['order-a1', { owner: 'anna', team: 'team-a', text: 'tea' }],
    ['order-b1', { owner: 'bert', team: 'team-b', text: 'coffee' }],
  ])
  const carts = new Map([
    ['cart-a1', 'anna'],
    ['cart-b1', 'bert'],
  ])
  const order = owned('order', {
    param: 'id',
    find: (id, _user: User) => orders.get(id),
    allow: (found, one) => found.owner === one.name,
  })
  const team = owned('team', {
    param: 'team',
    find: (id, one: User) => teams.get(id)?.includes(one.name) === true && { id },
  })
  const router = withAuth(user)(new Router())
  const idOf = (ctx: { readonly params: Params }) => ctx.params['id'] ?? ''
  const answer = (ctx: Context & { readonly params: Params }): void => {
    ctx.body = orders.get(idOf(ctx))?.text
  }
  const change = (ctx: Context & { readonly params: Params }): void => {
    const found = orders.get(idOf(ctx))
    if (found === undefined) return
    found.text += '!'
    ctx.status = 204
  }
  const remove = (ctx: Context & { readonly params: Params }): void => {
    if (carts.delete(idOf(ctx))) ctx.status = 204
  }
  const cart = owned('cart', { param: 'id', find: (id, one: User) => carts.get(id) === one.name })

  if (leak === 'HEAD says that it exists') {
    router.head('/orders/:id', (ctx) => {
      ctx.status = orders.has(ctx.params['id'] ?? '') ? 204 : 404
    })
  }
  if (leak === 'HEAD has the length of what exists') {
    router.head('/orders/:id', (ctx) => {
      ctx.status = 404
      ctx.length = orders.has(ctx.params['id'] ?? '') ? 7 : 9
    })
  }
  const hand = (find: (id: string) => string, foreign: (ctx: Context) => void = (ctx) => void (ctx.status = 404)) =>
    router.get('/orders/:id', (ctx) => {
      const found = orders.get(find(ctx.params['id'] ?? ''))
      const one = ctx.request.auth.name
      if (found?.owner === one) ctx.body = found.text
      else if (found !== undefined) foreign(ctx)
      // a look-up that is careless about the spelling looks at the owner of what was written
      if (found !== undefined && orders.get(ctx.params['id'] ?? '') === undefined) ctx.body = found.text
    })
  switch (leak) {
    case 'GET reads it':
      router.get('/orders/:id', answer)
      break
    case 'a 403 says that it exists':
      hand(String, (ctx) => void (ctx.status = 403))
      break
    case 'another body says that it exists':
      hand(String, (ctx) => {
        ctx.body = 'not yours'
        ctx.status = 404
      })
      break
    case 'a header says that it exists':
      hand(String, (ctx) => ctx.set('X-Owner', 'other'))
      break
    case 'the other case is another way to it':
      hand((id) => id.toLowerCase())
      break
    case 'it is decoded twice':
      hand((id) => decodeURIComponent(id))
      break
    case 'the owner is looked up by the path as it was sent':
      router.get('/orders/:id', (ctx) => {
        // `%6F` is an `o`, and the list of owners does not know it
        const owner = orders.get(ctx.path.replace(/^.*\//, ''))?.owner ?? ctx.request.auth.name
        if (owner === ctx.request.auth.name) answer(ctx)
      })
      break
    case 'blanks and dots are cut off':
      hand((id) => id.replace(/[ .]+$/, ''))
      break
    default:
      router.get('/orders/:id', withAuth(user, order), answer)
  }
  const decided = (isLeaky: boolean) => (isLeaky ? withAuth(user) : withAuth(user, order))
  router.put('/orders/:id', decided(leak === 'PUT changes it'), change)
  router.patch('/orders/:id', decided(leak === 'PATCH changes it'), change)
  router.delete('/carts/:id', leak === 'DELETE removes it' ? withAuth(user) : withAuth(user, cart), remove)
  const ofTeam = owned('order', {
    param: 'id',
    find: (id, _user: User, { ctx: { params } }) => {
      const found = orders.get(id)
      return found?.team === (params as Params | undefined)?.['team'] && found
    },
  })
  router.get(
    '/teams/:team/orders/:id',
    leak === 'the team is not looked at' ? withAuth(user, ofTeam) : withAuth(user, team, ofTeam),
    answer,
  )
  router.get('/orders', (ctx) => {
    const all = [...orders].filter(
      ([, { owner }]) => leak === 'the list has all ids' || owner === ctx.request.auth.name,
    )
    ctx.body = all.map(([id]) => id)
  })
  router.get('/articles/:slug', withAuth(user, unchecked('slug', 'all members read all articles')), (ctx) => {
    ctx.body = ctx.params.slug
  })
  router.get('/help/:topic', withAuth(null), (ctx) => {
    ctx.body = ctx.params.topic
  })
  const app = new Koa()
  app.use(router.routes())
  return app
}

/** What the sweep needs to know about the shop. */
const sweep: IsolatedOptions = {
  users: { anna: withBearer('anna'), bert: withBearer('bert') },
  objects: {
    id: { anna: ['order-a1'], bert: ['order-b1'] },
    team: { anna: ['team-a'], bert: ['team-b'] },
    'DELETE /carts/:id': { id: { anna: ['cart-a1'], bert: ['cart-b1'] } },
  },
  unknown: { id: 'order-x1', team: 'team-x' },
  bodies: { 'PUT /orders/:id': { text: 'x' } },
  skip: { 'GET /help/:topic': 'everybody reads it' },
}

/** What breaks, as it is printed, and its laws. */
const brokenIn = async (app: Koa, options: IsolatedOptions = sweep) => {
  const violations = await violationsOf(expectIsolated(app, options))
  expect(violations).not.toEqual([])
  const message = violations.map(({ law, counterexample, fix }) => `${law}\n${counterexample}\nfix: ${fix}`).join('\n')
  return { violations, message }
}

describe('a right shop', () => {
  it('resolves to what was asked, and why the rest was not', async () => {
    const checked = await expectIsolated(shop(), sweep)
    expect(checked.map(({ operation, skipped }) => [operation, skipped])).toStrictEqual([
      ['GET /orders/:id', undefined],
      ['PUT /orders/:id', undefined],
      ['PATCH /orders/:id', undefined],
      ['DELETE /carts/:id', undefined],
      ['GET /teams/:team/orders/:id', undefined],
      ['GET /orders', undefined],
      ['GET /articles/:slug', 'all members read all articles'],
      ['GET /help/:topic', 'everybody reads it'],
    ])
    for (const { requests, skipped } of checked) expect(requests > 0).toBe(skipped === undefined)
    expect(checked.reduce((sum, { requests }) => sum + requests, 0)).toBeLessThan(300)
  })
})

describe('a shop with a leak', () => {
  it.each(leaks)('%s: found, with a command that shows it', async (leak) => {
    const { violations, message } = await brokenIn(shop(leak))
    expect(message).toMatch(/curl -(?:i|I)/)
    // nothing is said about the operations that are right
    const own: Readonly<Record<string, string>> = {
      PUT: 'PUT /orders/:id',
      PATCH: 'PATCH /orders/:id',
      DELETE: 'DELETE /carts/:id',
      HEAD: 'HEAD /orders/:id',
      'the team': 'GET /teams/:team/orders/:id',
      'the list': 'GET /orders',
    }
    const operation = own[Object.keys(own).find((begin) => leak.startsWith(begin)) ?? ''] ?? 'GET /orders/:id'
    for (const { law } of violations)
      expect(law.startsWith(`${operation}:`) || law.includes(': HEAD as'), law).toBe(true)
    if (!leak.startsWith('HEAD')) expect(message).not.toContain('an own id')
  })

  it('the command repeats the request', async () => {
    const { violations } = await brokenIn(shop('GET reads it'))
    expect(violations[0]?.counterexample).toContain(
      `curl -i -X GET "$URL"'/orders/order-b1' -H 'Authorization: Bearer anna'\n200 coffee`,
    )
  })

  it('what differs is named, as a header field cannot be seen in the two answers', async () => {
    const app = shop()
    app.middleware.unshift((ctx, next) => {
      if (ctx.path === '/orders/order-b1') ctx.set('X-Found', 'yes')
      return next()
    })
    const { violations } = await brokenIn(app)
    expect(violations[0]?.counterexample).toMatch(/\nwhat differs: x-found$/)
  })
})

describe('nothing is left out unseen', () => {
  const { skip: _skip, ...withoutSkip } = sweep
  const { id: _id, ...withoutId } = sweep.objects
  const ids = (anna: string[], bert: string[]) => ({ ...sweep, objects: { ...sweep.objects, id: { anna, bert } } })
  const stranger = { anna: withBearer('wrong'), bert: withBearer('bert') }
  const skip = { ...sweep.skip, 'GET /x': 'y z' }
  const noIds = /GET \/orders\/:id: :id has no ids and no reason/
  const noUnknown = /:id has no unknown id and no reason.*unknown: \{ id: \.\.\. \}/s
  const notOwn = /GET \/orders\/:id: an own id of anna is not answered with a 2xx[^]*fix: name ids that exist/
  const notIn =
    /GET \/orders\/:id: an own id of anna is not answered with a 2xx[^]*fix: send the credential that it takes/
  it.each<[string, IsolatedOptions, RegExp]>([
    ['a parameter without ids', { ...sweep, objects: withoutId }, noIds],
    ['a parameter without an unknown id', { ...sweep, unknown: { team: 'x' } }, noUnknown],
    ['a parameter with ids of one user', ids(['x'], []), /:id has ids of anna only .*with ids of two users/s],
    ['an operation that is no longer skipped', withoutSkip, /GET \/help\/:topic: :topic has no ids and no reason/],
    ['a blank as a reason', { ...sweep, skip: { 'GET /help/:topic': ' ' } }, /it is skipped without a reason/],
    ['an entry that fits no operation', { ...sweep, skip }, /skip: GET \/x fits no operation/],
    ['a body that fits no operation', { ...sweep, bodies: { 'PUT /x': {} } }, /bodies: PUT \/x fits no operation/],
    ['a parameter of no path', { ...sweep, objects: { ...sweep.objects, ix: {} } }, /objects: ix fits no operation/],
    ['an own id that is not there', ids(['order-a2'], ['order-b1']), notOwn],
    ['a user whom the application does not know', { ...sweep, users: stranger }, notIn],
  ])('%s is an error', async (_what, options, reason) => {
    expect((await brokenIn(shop(), options)).message).toMatch(reason)
  })

  it('a RegExp is an error, unless it is skipped', async () => {
    const router = new Router().get(/^\/x/, withAuth(httpBearer({ authenticate: () => 'x' })), () => {})
    const app = new Koa()
    app.use(router.routes())
    const options = { users: sweep.users, objects: {}, unknown: {} }
    expect((await brokenIn(app, options)).message).toContain('the path for requests is unknown')
    await expectIsolated(app, { ...options, skip: { 'GET /^\\/x/': 'it has no objects' } })
  })

  it.each<[string, unknown]>([
    ['one user', { ...sweep, users: { anna: withBearer('anna') } }],
    ['an unknown option', { ...sweep, paths: {} }],
    ['no objects', { users: sweep.users, unknown: {} }],
  ])('%s is a TypeError', async (_what, options) => {
    // Safe: a program without types could write this
    await expect(expectIsolated(shop(), options as IsolatedOptions)).rejects.toThrow(TypeError)
  })
})

describe('what may differ', () => {
  const user = httpBearer({ authenticate: (_request, token) => ({ name: token }) })
  const owners = new Map([['n1', 'anna'], ['n2', 'bert']]) // prettier-ignore
  const echoing = (header: string, prefix = ''): Koa => {
    const note = owned('note', { param: 'id', find: (id, one: { name: string }) => owners.get(id) === one.name })
    const app = new Koa()
    let count = 0
    app.use(async (ctx, next) => {
      await next()
      ctx.set(header, prefix + String(++count))
      if (ctx.status === 404) ctx.body = `no ${ctx.path}`
    })
    const router = new Router().get('/notes/:id', withAuth(user, note), (ctx) => {
      ctx.body = 'mine'
    })
    app.use(router.routes())
    return app
  }
  const options = {
    users: sweep.users,
    objects: { id: { anna: ['n1'], bert: ['n2'] } },
    unknown: { id: 'n-unknown' },
  }

  it('the id that was asked for may be repeated, and ids of requests differ', async () => {
    await expectIsolated(echoing('X-Request-Id'), options)
  })

  it('the value of a cookie differs, its name does not', async () => {
    await expectIsolated(echoing('Set-Cookie', 'sid='), options)
    expect((await brokenIn(echoing('Set-Cookie', 'sid'), options)).message).toContain('what differs: set-cookie')
  })

  it('another field only if it is ignored', async () => {
    expect((await brokenIn(echoing('X-Count'), options)).message).toContain('from an unknown id')
    await expectIsolated(echoing('X-Count'), { ...options, ignore: ['x-COUNT'] })
  })
})

it('three ids of each user are asked for, and no more', async () => {
  const ids = { anna: ['a1'], bert: ['b1', 'b2', 'b3', 'b4'] }
  const router = withAuth(user)(new Router()).get('/:id', (ctx) => {
    const { id = '' } = ctx.params
    if (['b3', 'b4'].includes(id) || id.startsWith(ctx.request.auth.name.charAt(0))) ctx.body = 'text'
  })
  const app = new Koa()
  app.use(router.routes())
  const { message } = await brokenIn(app, { users: sweep.users, objects: { id: ids }, unknown: { id: 'x' } })
  expect([message.includes("'/b3'"), message.includes("'/b4'")]).toEqual([true, false])
})

it('objects inside of others are deleted first', async () => {
  const kept = new Map(['anna', 'bert'].flatMap((name) => [[`box-${name}`, name], [`item-${name}`, name]])) // prettier-ignore
  const find = (id: string, { name }: { readonly name: string }) => kept.get(id) === name
  const router = withAuth(user)(new Router())
  const remove = (ctx: Context & { readonly params: Params }) => {
    for (const id of ctx.params['item'] === undefined ? [...kept.keys()] : [ctx.params['item']]) kept.delete(id)
    ctx.status = 204
  }
  router.delete('/boxes/:box', withAuth(user, owned('box', { param: 'box', find })), remove)
  router.delete(
    '/boxes/:box/:item',
    withAuth(user, owned('box', { param: 'box', find }), owned('item', { param: 'item', find })),
    remove,
  )
  const app = new Koa()
  app.use(router.routes())
  const { violations } = await brokenIn(app, {
    users: sweep.users,
    objects: {
      box: { anna: ['box-anna'], bert: ['box-bert'] },
      item: { anna: ['item-anna'], bert: ['item-bert'] },
    },
    unknown: { box: 'box-x', item: 'item-x' },
  })
  // anna's box takes everything with it
  expect(violations.map(({ law }) => law)).toEqual(['DELETE /boxes/:box: an own id of bert is not answered with a 2xx'])
})

describe('a list', () => {
  const listing = (text: string, ids = ['note.1', 'note.2'], answer = (ctx: Context) => void (ctx.body = 'text')) => {
    const owners = new Map(ids.map((id, at) => [id, at === 0 ? 'anna' : 'bert']))
    const user = httpBearer({ authenticate: (_request, token) => ({ name: token }) })
    const find = (id: string, { name }: { readonly name: string }) => owners.get(id) === name
    const router = new Router()
    router.get('/notes', withAuth(user), (ctx) => (ctx.body = text))
    router.get('/notes/:id', withAuth(user, owned('note', { param: 'id', find })), answer)
    const app = new Koa()
    app.use(router.routes())
    return app
  }
  const options: IsolatedOptions = {
    users: { anna: withBearer('anna'), bert: withBearer('bert') },
    objects: { id: { anna: ['note.1'], bert: ['note.2'] } },
    unknown: { id: 'note.3' },
  }

  it('may have words that an id is a part of, or that look like one', async () => {
    await expectIsolated(listing('note.20, xnote.2, note-2 and note.11'), options)
    const short = { ...options, objects: { id: { anna: ['nt.1'], bert: ['nt.2'] } } }
    await expectIsolated(listing('nt.1 and nt.2', ['nt.1', 'nt.2']), short)
  })

  it('does not count an own id that is answered with a redirect', async () => {
    const { message } = await brokenIn(
      listing('', undefined, (ctx) => void ctx.redirect('/')),
      options,
    )
    expect(message).toContain('an own id of anna is not answered with a 2xx')
  })

  it.each(['note.2', 'note.20 and (note.2)', '"note.2"'])('must not have the id of another user: %s', async (text) => {
    expect((await brokenIn(listing(text), options)).message).toContain('it lists an id of another user: note.2')
  })
})
