// A page that calls an API of the provider as the user: the shop keeps the provider's tokens, and refreshes them.
import * as E from 'fp-ts/lib/Either.js'
import * as t from 'io-ts'
import { operation, UnavailableError } from 'koa-with-auth'
import { upstream, UpstreamGone, type OidcKind } from 'koa-with-auth/sign-in/oidc'
import { ordersPage, permissionPage } from './accountPages.js'
import { isNavigation, page } from './answers.js'
import type { ProviderSettings } from './settings.js'
import type { Routes, Shop } from './shop.js'

const Order = t.type({ item: t.string, date: t.string })
const Times = t.type({ issuedAt: t.number, expiresAt: t.number })

/** What the API answers. An API of another provider says nothing of the token. */
const Orders = t.type({ orders: t.array(Order), token: t.union([Times, t.undefined]) })
export type Orders = t.TypeOf<typeof Orders>

/** Adds the route, if the provider has an API. */
export const orderRoutes = (api: Routes, shop: Shop, settings: ProviderSettings, provider: OidcKind): void => {
  const { accounts, app, user } = shop
  if (settings.api === undefined) return
  const orders = upstream(app, { provider, ...settings.api })
  const summary = 'Your orders, asked from the API of the provider'
  api.get('/orders', operation({ summary, tags: ['Providers'] }), user, async (ctx) => {
    const { username } = ctx.request.auth
    try {
      const answer = await orders.fetch(ctx, '/orders')
      const read = Orders.decode(answer.ok ? await answer.json() : undefined)
      if (E.isLeft(read)) throw new UnavailableError(`orders: ${answer.status}`)
      if (isNavigation(ctx.request)) page(ctx, ordersPage(ctx.request.auth, read.right, settings.permissions))
      else ctx.body = read.right
    } catch (error) {
      // JSON gets the 401 of the guard
      if (!(error instanceof UpstreamGone) || !isNavigation(ctx.request)) throw error
      const linked = await accounts.identitiesOf(username)
      const isLinked = linked.some(({ issuer }) => issuer === settings.issuer)
      page(ctx, permissionPage(ctx.request.auth, isLinked))
    }
  })
}
