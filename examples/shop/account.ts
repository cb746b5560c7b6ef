// Who is signed in, the basket, and removing the password.
import type { Context } from 'koa'
import { operation, optional, withAuth } from 'koa-with-auth'
import { done, fieldsOf, keptIn, refuse } from './answers.js'
import type { Routes, Shop } from './shop.js'

const MAX_ITEM = 200
const MAX_ITEMS = 50

/** The items in the session. */
export const basketOf = (ctx: Context): ReadonlyArray<string> => {
  const basket = keptIn(ctx, 'basket')
  return Array.isArray(basket) ? basket.filter((item): item is string => typeof item === 'string') : []
}

/** Adds the routes. */
export const accountRoutes = (api: Routes, shop: Shop): void => {
  const { accounts, fresh, open, parser, proofsOf, removeWay, sessionAuth, user } = shop
  const of = (summary: string) => operation({ summary, tags: ['Account'] })

  api.get('/me', of('Who is signed in'), user, (ctx) => {
    const { username, verified } = ctx.request.auth
    // what a provider or a passkey knows of the user stays here
    const proofs = proofsOf(ctx).map(({ method, at, issuer, userVerified, backedUp }) => ({
      method,
      at,
      issuer,
      userVerified,
      backedUp,
    }))
    ctx.body = { user: username, verified, proofs }
  })
  // an outage is no empty basket, so the guard asks for the session
  api.get('/basket', of('The basket'), withAuth(optional(sessionAuth())), (ctx) => {
    ctx.body = { items: basketOf(ctx) }
  })
  api.post('/basket', of('Put something into the basket'), open, parser, (ctx) => {
    const { item } = fieldsOf(ctx)
    if (typeof item !== 'string' || item === '' || item.length > MAX_ITEM) return refuse(ctx, 400, 'malformed')
    const items = [...basketOf(ctx), item]
    if (items.length > MAX_ITEMS) return refuse(ctx, 409, 'full')
    ctx.session = { ...ctx.session, basket: items }
    done(ctx)
  })
  api.delete('/password', of('Remove the password'), fresh, async (ctx) => {
    const { username, password } = ctx.request.auth
    if (await removeWay(username, password === undefined ? 0 : 1, () => accounts.removePassword(username))) done(ctx)
    else refuse(ctx, 409, 'lastWay')
  })
}
