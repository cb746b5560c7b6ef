// An OpenID provider of the shop's own, for trying it without an account elsewhere. Whoever comes types a name.
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { randomBytes } from 'node:crypto'
import { exportJWK, generateKeyPair } from 'jose'
import { Provider, type Context } from 'oidc-provider'
import type { ProviderSettings } from './settings.js'

// In seconds: so short that the shop has to refresh soon
const MINUTE = 60

interface GrantContext {
  readonly oidc: {
    readonly session: { readonly accountId: string; readonly grantIdFor: (client: string) => string | undefined }
    readonly client: { readonly clientId: string }
    readonly provider: {
      readonly Grant: {
        new (of: object): { readonly addOIDCScope: (scope: string) => void; readonly save: () => Promise<string> }
        readonly find: (id: string) => Promise<unknown>
      }
    }
  }
}

// One grant for each session and client. A code that comes twice revokes it, and so does its user
const loadExistingGrant = async ({ oidc: { session, client, provider } }: GrantContext): Promise<unknown> => {
  const known = session.grantIdFor(client.clientId)
  const found = known === undefined ? undefined : await provider.Grant.find(known)
  if (found !== undefined) return found
  const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId })
  grant.addOIDCScope('openid orders')
  await grant.save()
  return grant
}

const html = (title: string, main: string): string =>
  `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title><link rel="icon" href="data:,"><body style="color-scheme:light dark;font:1rem/1.5 system-ui;max-width:24rem;margin:15vh auto;padding:0 1rem"><h1>${title}</h1>${main}</body></html>`

const question = html(
  'A provider for trying',
  '<form method="post"><label>Your name here <input name="login" value="carol" required pattern="[a-z]{1,20}"></label> <button>Continue</button></form>',
)

const logoutSource = (ctx: { body: unknown }, form: string): void => {
  const button = '<button form="op.logoutForm" name="logout" value="yes">Sign out here, too</button>'
  ctx.body = html('A provider for trying', form + button)
}

// The API: who has a token of the scope sees the orders of its user
const orders = async (provider: Provider, ctx: Context): Promise<void> => {
  const [, value = ''] = /^Bearer ([\w.~+/-]+)$/.exec(ctx.get('Authorization')) ?? []
  const token = await provider.AccessToken.find(value)
  ctx.status = token?.scopes.has('orders') === true ? 200 : 401
  if (token === undefined || ctx.status === 401) return ctx.set('WWW-Authenticate', 'Bearer error="invalid_token"')
  const list = ['tea', 'bread', 'honey'].map((item, day) => ({
    item: `${item} for ${token.accountId}`,
    date: `2026-11-0${day + 1}`,
  }))
  ctx.body = { orders: list, token: { issuedAt: token.iat * 1000, expiresAt: token.exp * 1000 } }
}

// The page where a user takes the permission back: the next refresh of the shop is an `invalid_grant`
const permissions = async (provider: Provider, ctx: Context): Promise<void> => {
  const grant = (await provider.Session.get(ctx)).grantIdFor('shop')
  if (ctx.method === 'POST' && grant !== undefined) {
    await (await provider.Grant.find(grant))?.destroy()
    for (const kind of [provider.AccessToken, provider.RefreshToken]) await kind.revokeByGrantId(grant)
  }
  const form = '<p>The shop may see your orders.</p><form method="post"><button>Take it back</button></form>'
  ctx.set('Cache-Control', 'no-store')
  ctx.body = html('A provider for trying', ctx.method === 'POST' ? '<p>The shop sees nothing any more.</p>' : form)
}

const listening = (server: Server, port: number): Promise<number> =>
  new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })

const bodyIn = async (req: AsyncIterable<unknown>): Promise<URLSearchParams> => {
  let text = ''
  for await (const chunk of req) if (text.length < 1000) text += String(chunk)
  return new URLSearchParams(text)
}

/** Starts it, on the port `wanted` if that is free, and resolves to how the shop is registered. */
export const startProvider = async (
  origin: string,
  wanted: number,
): Promise<ProviderSettings & { readonly close: () => void }> => {
  let answer: ReturnType<Provider['callback']> = (_req, res) => void res.writeHead(503).end()
  const server = createServer((req, res) => answer(req, res))
  const port = await listening(server, wanted).catch(() => listening(server, 0))
  const issuer = `http://127.0.0.1:${port}`
  const [id, secret] = ['shop', randomBytes(32).toString('base64url')]
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  const provider = new Provider(issuer, {
    jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig' }] },
    clients: [
      {
        client_id: id,
        client_secret: secret,
        redirect_uris: ['provider', 'posted'].map((name) => `${origin}/sign-in/${name}/callback`),
        post_logout_redirect_uris: [`${origin}/signed-out`],
        backchannel_logout_uri: `${origin}/sign-out/backchannel`,
        backchannel_logout_session_required: true,
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
      },
    ],
    cookies: { keys: [randomBytes(32).toString('hex')] },
    findAccount: (_ctx: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
    interactions: { url: (_ctx: unknown, { uid }: { readonly uid: string }) => `/who/${uid}` },
    loadExistingGrant,
    responseTypes: ['code'],
    scopes: ['openid', 'orders'],
    // each refresh token is good once: the shop keeps the next one before it uses the access token
    issueRefreshToken: () => true,
    rotateRefreshToken: true,
    pkce: { required: () => true },
    features: {
      devInteractions: { enabled: false },
      rpInitiatedLogout: { enabled: true, logoutSource },
      backchannelLogout: { enabled: true },
    },
    ttl: {
      AccessToken: MINUTE,
      RefreshToken: 86_400,
      AuthorizationCode: 60,
      IdToken: 600,
      Interaction: 3600,
      Session: 86_400,
      Grant: 86_400,
    },
    // the shop is on this machine
    fetch: (url: string, { dispatcher: _, ...init }: Record<string, unknown>) => fetch(url, init),
  })
  provider.use(async (ctx, next) => {
    if (ctx.path === '/orders') return orders(provider, ctx)
    if (ctx.path === '/permissions') return permissions(provider, ctx)
    if (!ctx.path.startsWith('/who/')) return next()
    ctx.respond = false
    const { req, res } = ctx
    const name = req.method === 'POST' ? ((await bodyIn(req)).get('login') ?? '') : ''
    if (!/^[a-z]{1,20}$/.test(name)) {
      res.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8', 'Cache-Control': 'no-store' })
      res.end(question)
      return
    }
    await provider.interactionFinished(req, res, { login: { accountId: name } }, { mergeWithLastSubmission: false })
  })
  answer = provider.callback()
  server.unref()
  const close = () => {
    server.close()
    server.closeAllConnections()
  }
  const api = { resource: issuer, scope: ['orders'] }
  return { issuer, id, secret, api, permissions: `${issuer}/permissions`, close }
}
