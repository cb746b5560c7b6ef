// Passkeys: register, sign in, prove, list, remove.
import * as t from 'io-ts'
import { operation, owned, withAuth } from 'koa-with-auth'
import { begin, finish } from 'koa-with-auth/sign-in'
import { passkeyOperations } from 'koa-with-auth/sign-in/passkeys'
import type { Account } from './accounts.js'
import { done, refuse } from './answers.js'
import { keep, type Routes, type Shop } from './shop.js'

// What the OpenAPI document says about the bodies of the shop's own answers
const Credential = t.type({ id: t.string })
const Listed = t.array(
  t.type({ id: t.string, createdAt: t.number, lastUsedAt: t.union([t.number, t.null]), backedUp: t.boolean }),
)
const Origins = t.type({ origins: t.array(t.string) })

/** Adds the routes. */
export const passkeyRoutes = (api: Routes, shop: Shop): void => {
  const { accounts, open, passkey, removeWay, sessionAuth, settings, signedIn, fresh, user } = shop
  const tags = ['Passkeys']
  const options = operation({ summary: 'Options of a sign-in', tags, ...passkeyOperations.begin })
  api.post('/sign-in/passkey/options', options, open, begin(passkey))
  const used = operation({ summary: 'Sign in', tags, ...passkeyOperations.finish })
  api.post(
    '/sign-in/passkey',
    used,
    open,
    finish(passkey, (_ctx, { proof }) => accounts.find(proof.subject), { keep }),
  )
  const creation = operation({ summary: 'Options of a new passkey', tags, ...passkeyOperations.beginRegistration })
  api.post('/passkeys/options', creation, fresh, begin(passkey.register))
  api.post(
    '/passkeys',
    operation({
      summary: 'Register',
      tags,
      ...passkeyOperations.finishRegistration,
      responses: { 201: Credential },
    }),
    user,
    finish(passkey.register, (ctx, { proof }) => {
      ctx.status = 201
      ctx.body = { id: proof.credential }
      return true
    }),
  )
  const list = operation({ summary: 'Your passkeys', tags, responses: { 200: Listed } })
  api.get('/passkeys', list, user, async (ctx) => {
    const own = await passkey.list(ctx.request.auth.username)
    ctx.body = own.map(({ id, createdAt, lastUsedAt, backedUp }) => ({ id, createdAt, lastUsedAt, backedUp }))
  })
  const removal = operation({
    summary: 'Remove one',
    tags,
    responses: { 204: { description: 'Removed' }, 409: { description: 'It is the last way to sign in' } },
  })
  const own = owned('passkey', {
    param: 'id',
    find: async (id, { username }: Account) => (await passkey.list(username)).find((one) => one.id === id),
  })
  const removing = withAuth(sessionAuth({ proof: { maxAge: settings.fresh } }), own)
  api.delete('/passkeys/:id', removal, removing, async (ctx) => {
    const { id, user } = ctx.request.objects.passkey
    if (await removeWay(user, 1, () => passkey.remove(id, user))) done(ctx)
    else refuse(ctx, 409, 'lastWay')
  })

  const stepUp = operation({ summary: 'Options of a fresh proof', tags, ...passkeyOperations.begin })
  api.post('/prove/passkey/options', stepUp, user, begin(passkey.stepUp))
  api.post(
    '/prove/passkey',
    operation({
      summary: 'A fresh proof',
      tags,
      ...passkeyOperations.finish,
      responses: { 204: { description: 'Proved' } },
    }),
    user,
    finish(passkey.stepUp, signedIn),
  )
  const related = operation({ summary: 'Related origins', tags, responses: { 200: Origins } })
  api.get('/.well-known/webauthn', related, open, (ctx) => {
    ctx.body = { origins: settings.relatedOrigins }
  })
}
