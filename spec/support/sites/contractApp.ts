/** The guards of the five routes of the contract in `spec/data/bad-inputs.json`. */
import {
  apiKeyHeader,
  constantTimeEqual,
  httpBasicAuth,
  httpBearer,
  withAuth,
  type Authenticator,
  type Guard,
} from 'koa-with-auth'
import { httpJwt } from 'koa-with-auth/jwt'
import { corpus } from '../models/corpus.js'

const accounts = new Map(Object.entries(corpus.app.basicUsers))
const byKey = (_request: unknown, key: string) => constantTimeEqual(key, 'supersecret') && { key }
const { issuer, audience, publicKey } = corpus.app.jwt

const bearer = httpBearer({ authenticate: byKey })
const guardOf = (auth: Authenticator<unknown>): Guard<unknown> => withAuth(auth)

/** By the name of the route. */
export const guards: Readonly<Record<string, Guard<unknown>>> = {
  basic: guardOf(
    httpBasicAuth({
      authenticate: (_request, name, password) => {
        const right = accounts.get(name)
        return right !== undefined && constantTimeEqual(password, right) && { name }
      },
    }),
  ),
  bearer: guardOf(bearer),
  headerkey: guardOf(apiKeyHeader({ paramName: 'X-API-Key', authenticate: byKey })),
  jwt: guardOf(httpJwt({ issuer: { issuer, publicKey, algorithms: ['RS256'] }, audience })),
  protected: guardOf(bearer),
}
