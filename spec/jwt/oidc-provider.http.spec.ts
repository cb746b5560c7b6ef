/** End to end with `oidc-provider`: a real client gets a real token, and discovery finds the keys. */
import { pipe } from 'fp-ts/lib/function.js'
import { requireScopes } from 'koa-with-auth'
import { httpIntrospection, httpJwt, scopesOf } from 'koa-with-auth/jwt'
import { describe, expect, it } from 'vitest'
import { authorizationServer, CLIENT, RESOURCE_SERVER } from '../support/servers/authorizationServer.js'
import { API } from '../support/servers/identityProvider.js'
import { INVALID, expectRefused, tokenSite } from '../support/sites/tokenSite.js'

describe('oidc-provider', () => {
  it.each(['ES256', 'RS256', 'EdDSA'])(
    'issues a client-credentials token signed with %s, which discovery can verify',
    async (alg) => {
      const { issuer, token, asked } = await authorizationServer('jwt', alg)
      const jwt = httpJwt({ issuer, audience: API, profile: 'rfc9068' })
      await jwt.ready()
      const { get } = await tokenSite(pipe(jwt, requireScopes(['notes:read'], { granted: scopesOf })))
      const sent = await token(API, 'notes:read')
      const passed = await get(sent)
      expect([passed.status, passed.ran]).toEqual([200, 1])
      expect(JSON.parse(passed.text)).toMatchObject({
        iss: issuer,
        aud: API,
        client_id: CLIENT.id,
        scope: 'notes:read',
      })
      expect((await get(await token(API, 'notes:write'))).challenge).toBe(
        'Bearer realm="api", error="insufficient_scope", scope="notes:read"',
      )
      const other = await get(await token('https://other.example', 'notes:read'))
      expectRefused(other, `${INVALID}, scope="notes:read"`)
      expect(
        asked.filter((one) => one.startsWith('GET /.well-known') || one === 'GET /jwks').length,
      ).toBeLessThanOrEqual(3)
    },
  )

  it('issues an opaque token, which introspection can verify', async () => {
    const { issuer, token } = await authorizationServer('opaque')
    const { get } = await tokenSite(
      httpIntrospection({ issuer, client: RESOURCE_SERVER, audience: API, timeout: 5000 }),
    )
    const passed = await get(await token(API, 'notes:read'))
    expect([passed.status, passed.ran]).toEqual([200, 1])
    expect(JSON.parse(passed.text)).toMatchObject({ active: true, aud: API, scope: 'notes:read' })
    for (const bad of [await token('https://other.example', 'notes:read'), 'rubbish']) {
      const refused = await get(bad)
      expectRefused(refused, INVALID)
    }
  })
})
