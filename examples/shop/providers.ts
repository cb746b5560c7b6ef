// Signing in with providers, linking their identities, and signing out there.
import { operation, UnavailableError } from 'koa-with-auth'
import { begin, finish, type Kind } from 'koa-with-auth/sign-in'
import { backChannelLogout, rpLogout, oauth2, oidc, afterRpLogout } from 'koa-with-auth/sign-in/oidc'
import { refuse, say } from './answers.js'
import { orderRoutes } from './orders.js'
import type { PlainSettings, ProviderSettings } from './settings.js'
import { keep, type Routes, type Shop } from './shop.js'

// GitHub's way: the access token says nothing, so the provider is asked who it is
const userAt =
  (user: string) =>
  async ({ access_token: token }: { readonly access_token: string }, signal: AbortSignal): Promise<string | number> => {
    const headers = { Authorization: `Bearer ${token}`, Accept: 'application/json' }
    const response = await fetch(user, { headers, signal, redirect: 'error' })
    if (response.status >= 500 || response.status === 429) throw new UnavailableError(`user: ${response.status}`)
    const answer: unknown = await response.json().catch((error: unknown) => {
      throw new UnavailableError('user: no JSON', { cause: error })
    })
    const id: unknown = typeof answer === 'object' && answer !== null ? Reflect.get(answer, 'id') : undefined
    // an empty id is refused
    return response.ok && (typeof id === 'string' || typeof id === 'number') ? id : ''
  }

/** Adds the routes. `provider` is the shop's own, unless the settings have one. */
export const providerRoutes = (api: Routes, shop: Shop, provider: ProviderSettings): void => {
  const { accounts, fresh, open, settings, times, user } = shop
  const of = (summary: string) => operation({ summary, tags: ['Providers'] })
  const openId = ({ issuer, id, secret }: ProviderSettings, path: string, isPosted = false) =>
    oidc({
      ...times,
      issuer,
      client: { id, secret },
      callback: `${path}/callback`,
      responseMode: isPosted ? 'form_post' : 'query',
      keys: { retry: 5000 },
    })
  const plainKind = ({ authorize, token, user: at, clientId, clientSecret }: PlainSettings) =>
    oauth2({
      ...times,
      name: 'plain',
      authorize,
      token,
      client: { id: clientId, secret: clientSecret },
      callback: '/sign-in/plain/callback',
      subject: userAt(at),
    })

  const userOf = async (_ctx: unknown, { proof }: { proof: { issuer: string; subject: string } }) => {
    const owner = await accounts.ownerOf(proof)
    return owner === undefined ? undefined : accounts.find(owner)
  }
  // a provider without OpenID does not say when its user was asked, so a kind of oauth2 takes no hook for stepUp
  const add = <Ask, Kept, Answer>(
    path: string,
    kind: Kind<Ask, Kept, Answer, { method: string; issuer: string; subject: string }>,
    prefix: string,
    isFreshProof = false,
  ): void => {
    const callback = finish(
      kind,
      {
        signIn: (_ctx, { proof: { issuer, subject } }) =>
          accounts.withIdentity({ issuer, subject }, `${prefix}-${subject}`),
        ...(isFreshProof && { stepUp: userOf }),
        link: async (ctx, { proof: { issuer, subject }, subject: user }) => {
          if (user !== undefined && (await accounts.link(user, { issuer, subject }))) {
            say(ctx, 'linked')
            return true
          }
          refuse(ctx, 409, 'anotherUser')
          return false
        },
      },
      { keep },
    )
    api.get(path, of('Sign in with a provider'), open, begin(kind))
    api.get(`${path}/callback`, of('The answer of the provider'), open, callback)
    api.post(`${path}/callback`, of('The answer of the provider, posted'), open, callback)
  }
  const main = openId(provider, '/sign-in/provider')
  orderRoutes(api, shop, provider, main)
  add('/sign-in/provider', main, 'provider', true)
  add('/sign-in/posted', openId(provider, '/sign-in/posted', true), 'provider')
  if (settings.second !== undefined) add('/sign-in/b', openId(settings.second, '/sign-in/b'), 'b')
  if (settings.plain !== undefined) add('/sign-in/plain', plainKind(settings.plain), 'plain')

  api.post('/accounts/provider', of('Link an identity to the account'), fresh, begin(main, { intent: 'link' }))
  // a sign-in at a provider that still knows its user is no fresh proof, so the provider is asked to ask
  api.post('/prove/provider', of('A fresh proof by the provider'), user, begin(main, { intent: 'stepUp' }))
  api.get('/accounts', of('Linked identities'), user, async (ctx) => {
    ctx.body = await accounts.identitiesOf(ctx.request.auth.username)
  })
  const callback = '/signed-out'
  api.post('/sign-out/provider', of('Sign out here and at the provider'), user, rpLogout(main, { callback }))
  api.get(callback, of('The way back from the provider'), open, afterRpLogout(main, { callback }))
  const ended = backChannelLogout(main, {
    user: ({ issuer, subject }) => (subject === undefined ? undefined : accounts.ownerOf({ issuer, subject })),
  })
  api.post('/sign-out/backchannel', of('The provider says that a user signed out there'), open, ended)
}
