/**
 * `oidc-provider` on loopback as users sign in with it: everybody who comes is anna, without questions. It revokes a
 * grant whose code comes twice, keeps one grant for each session and client, and sends `iss`.
 */
import { exportJWK } from 'jose'
import { Provider } from 'oidc-provider'
import { signingKey } from './identityProvider.js'
import { restartable } from './server.js'

export const SECRET = 'a-secret-of-the-client-a-secret-of-the-client'

export type OpenIdProvider = Awaited<ReturnType<typeof openIdProvider>>

export interface ProviderSettings {
  /** The redirect URIs of the client `shop`. */
  readonly redirectUris: ReadonlyArray<string>
  /** Further metadata of the client. */
  readonly client?: Readonly<Record<string, unknown>>
  /** Further configuration. */
  readonly configuration?: Readonly<Record<string, unknown>>
  readonly features?: Readonly<Record<string, unknown>>
}

let key: ReturnType<typeof signingKey> | undefined

/** Runs until the test has finished. `subject` is the user who comes next. */
export const openIdProvider = async (settings: ProviderSettings) => {
  /** The requests that it got, as `GET /path`, without queries. */
  const asked: string[] = []
  /** What it reported, such as `grant.revoked` and `grant.error`. */
  const reported: string[] = []
  let handle: ReturnType<Provider['callback']> | undefined = undefined
  const { origin, ...server } = await restartable((req, res) => {
    asked.push(`${req.method} ${req.url?.split('?')[0]}`)
    handle?.(req, res)
  })
  const { privateKey } = await (key ??= signingKey('RS256', 'k1'))
  const result = { issuer: origin, asked, reported, subject: 'anna', ...server }
  const provider = new Provider(origin, {
    jwks: { keys: [{ ...(await exportJWK(privateKey)), kid: 'k1', alg: 'RS256', use: 'sig' }] },
    clients: [
      {
        client_id: 'shop',
        client_secret: SECRET,
        redirect_uris: [...settings.redirectUris],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        ...settings.client,
      },
    ],
    cookies: { keys: ['a-key-of-the-provider-a-key-of-the-provider'] },
    findAccount: (_ctx: unknown, accountId: string) => ({
      accountId,
      claims: () => ({ sub: accountId, email: `${accountId}@shop.example`, email_verified: false }),
    }),
    claims: { openid: ['sub'], email: ['email', 'email_verified'] },
    interactions: { url: (_ctx: unknown, { uid }: { readonly uid: string }) => `/sign-in-now/${uid}` },
    loadExistingGrant: async (ctx: GrantContext) => {
      const { session, client, provider: here } = ctx.oidc
      const known = session.grantIdFor(client.clientId)
      if (known !== undefined) return here.Grant.find(known)
      const grant = new here.Grant({ clientId: client.clientId, accountId: session.accountId })
      grant.addOIDCScope('openid email offline_access')
      await grant.save()
      return grant
    },
    features: {
      devInteractions: { enabled: false },
      rpInitiatedLogout: { enabled: true, logoutSource },
      backchannelLogout: { enabled: true },
      pushedAuthorizationRequests: { enabled: true },
      revocation: { enabled: true },
      ...settings.features,
    },
    responseTypes: ['code'],
    pkce: { required: () => true },
    fetch: (url: string, { dispatcher: _, ...init }: Record<string, unknown>) => fetch(url, init),
    renderError: (ctx: { body: unknown }, out: unknown) => {
      ctx.body = out
    },
    ...settings.configuration,
  })
  provider.use(async (ctx, next) => {
    if (!ctx.path.startsWith('/sign-in-now/')) return next()
    const submission = { login: { accountId: result.subject, remember: true }, consent: {} }
    await provider.interactionFinished(ctx.req, ctx.res, submission, { mergeWithLastSubmission: false })
    ctx.respond = false
  })
  const events = ['grant.revoked', 'grant.error', 'backchannel.success', 'backchannel.error', 'server_error']
  for (const event of events) {
    provider.on(event, (...given) => {
      const error = given.find((one) => one instanceof Error)
      reported.push(error === undefined ? event : `${event}: ${error.message}`)
    })
  }
  handle = provider.callback()
  return result
}

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

const logoutSource = (ctx: { body: unknown }, form: string): void => {
  ctx.body = `<html><body>${form}<button form="op.logoutForm" name="logout" value="yes">yes</button></body></html>`
}
