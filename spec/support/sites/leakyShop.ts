/** A shop whose operations are right, and the same shop with one leak of each kind. */
import Router from '@koa/router'
import Koa, { type Context } from 'koa'
import { httpBearer, owned, unchecked, withAuth } from 'koa-with-auth'
import { withBearer, type IsolatedOptions } from 'koa-with-auth/testing'

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
export const leaks = [
  'GET reads it',
  'PUT changes it',
  'PATCH changes it',
  'DELETE removes it',
  'a 403 says that it exists',
  'another body says that it exists',
  'a header says that it exists',
  'HEAD says that it exists',
  'the team is not looked at',
  'the list has all ids',
  'the other case is another way to it',
  'it is decoded twice',
  'blanks and dots are cut off',
  'the owner is looked up by the path as it was sent',
] as const

/** A leak, or none. */
type Leak = (typeof leaks)[number] | undefined

/** Makes a shop. */
export const shop = (leak?: Leak): Koa => {
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
export const sweep: IsolatedOptions = {
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
