/**
 * A real OpenID provider (oidc-provider), which signs everybody in as anna, without questions. It revokes a grant whose
 * code comes twice, keeps one grant for each session and client, and promises `iss` (RFC 9207).
 *
 * `wrong` changes its token responses, for what it cannot do wrong itself.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { exportJWK, generateKeyPair, SignJWT, decodeJwt } from 'jose'
import { Provider } from 'oidc-provider'

export const CLIENT = { id: 'shop', secret: 'a-secret-of-the-client-a-secret-of-the-client' }

const base64url = (value) => Buffer.from(JSON.stringify(value)).toString('base64url')

const signed = (key, claims) => new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: 'k1' }).sign(key)

/** Starts it on a port that is kept when it stops. */
export const startProvider = async (redirectUris) => {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  const { privateKey: strange } = await generateKeyPair('RS256')
  const asked = []
  const reported = []
  let server
  let port = 0
  let handle
  const state = { wrong: undefined }

  const changes = {
    unsigned: (claims) => `${base64url({ alg: 'none' })}.${base64url(claims)}.`,
    'signed by another key': (claims) => signed(strange, claims),
    'of an empty sub': (claims) => signed(privateKey, { ...claims, sub: '' }),
    'with another nonce': (claims) => signed(privateKey, { ...claims, nonce: 'another' }),
    'that has expired': (claims) => signed(privateKey, { ...claims, exp: claims.iat - 3600, iat: claims.iat - 7200 }),
    'for another client': (claims) => signed(privateKey, { ...claims, aud: 'another' }),
  }

  const changed = async (text, how) => {
    const answer = JSON.parse(text)
    return JSON.stringify({ ...answer, id_token: await changes[how](decodeJwt(answer.id_token)) })
  }

  // Holds a token response back, and sends another
  const intercept = (res, how) => {
    const { end } = res
    res.end = (chunk, ...rest) => {
      if (res.statusCode !== 200) return Reflect.apply(end, res, [chunk, ...rest])
      void changed(String(chunk), how).then((text) => {
        res.setHeader('Content-Length', Buffer.byteLength(text))
        Reflect.apply(end, res, [text])
      })
      return res
    }
  }

  const start = async () => {
    server = createServer((req, res) => {
      const path = `${req.method} ${req.url.split('?')[0]}`
      asked.push(path)
      if (path === 'POST /token' && state.wrong === 'error') return res.writeHead(500).end('down')
      if (path === 'POST /token' && state.wrong !== undefined) intercept(res, state.wrong)
      handle(req, res)
    })
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    port = server.address().port
  }
  const stop = async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  await start()
  const issuer = `http://127.0.0.1:${port}`
  const provider = new Provider(issuer, {
    jwks: { keys: [{ ...(await exportJWK(privateKey)), kid: 'k1', alg: 'RS256', use: 'sig' }] },
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        redirect_uris: redirectUris,
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
      },
    ],
    cookies: { keys: ['a-key-of-the-provider-a-key-of-the-provider'] },
    findAccount: (_ctx, accountId) => ({
      accountId,
      claims: () => ({ sub: accountId, email: `${accountId}@shop.example`, email_verified: true }),
    }),
    claims: { openid: ['sub'], email: ['email', 'email_verified'] },
    interactions: { url: (_ctx, { uid }) => `/sign-in-now/${uid}` },
    loadExistingGrant: async ({ oidc: { session, client, provider: here } }) => {
      const known = session.grantIdFor(client.clientId)
      if (known !== undefined) return here.Grant.find(known)
      const grant = new here.Grant({ clientId: client.clientId, accountId: session.accountId })
      grant.addOIDCScope('openid email offline_access profile')
      await grant.save()
      return grant
    },
    features: { devInteractions: { enabled: false } },
    responseTypes: ['code'],
    // passport-openidconnect has no PKCE
    pkce: { required: () => false },
    fetch: (url, { dispatcher: _, ...init }) => fetch(url, init),
    renderError: (ctx, out) => {
      ctx.body = out
    },
  })
  provider.use(async (ctx, next) => {
    if (!ctx.path.startsWith('/sign-in-now/')) return next()
    const submission = { login: { accountId: 'anna', remember: true }, consent: {} }
    await provider.interactionFinished(ctx.req, ctx.res, submission, { mergeWithLastSubmission: false })
    ctx.respond = false
  })
  for (const event of ['grant.revoked', 'server_error']) provider.on(event, () => reported.push(event))
  handle = provider.callback()
  /** What happens from now on. */
  const since = () => {
    const [first, from] = [asked.length, reported.length]
    return {
      tokens: () => asked.slice(first).filter((one) => one === 'POST /token').length,
      isRevoked: () => reported.slice(from).includes('grant.revoked'),
    }
  }
  return { issuer, since, state, start, stop }
}
