/**
 * An API for machines. Each client has API keys with scopes, of which the store has only digests. It is in Redis, REDIS_URL, or in a
 * database, DATABASE_URL: `postgres://...`, `mysql://...`, or an SQLite file.
 */
import Koa from 'koa'
import { apiApp, apiKeyHeader, operation, owned, requireScopes, unchecked, withAuth } from 'koa-with-auth'
import { seal } from 'koa-with-auth/audit'
import { apiKeys, type ApiKey } from 'koa-with-auth/keys'
import { isUp, openStore } from './store.js'

const { DATABASE_URL = 'file:app.db', NEW_KEY, REDIS_URL = DATABASE_URL } = process.env

export const service = async (url = REDIS_URL) => {
  const { store, signals, close } = await openStore(url)
  const keys = apiKeys({ prefix: 'app', store, signals })
  const client = apiKeyHeader({ paramName: 'X-API-Key', authenticate: keys.authenticate })

  const api = apiApp({ title: 'Reports', version: '1.0.0', prefix: '/api', auth: client })
  api.get('/health', operation({ summary: 'Whether it serves' }), withAuth(null), async (ctx) => {
    ctx.status = (await isUp(store.get(['health']))) ? 204 : 503
  })
  api.get('/reports', operation({ summary: 'The reports of the client' }), (ctx) => {
    ctx.body = [`A report for ${ctx.request.auth.owner}`]
  })
  api.post(
    '/keys/:owner',
    operation({ summary: 'Issues a key, shown once' }),
    withAuth(client, requireScopes(['admin']), unchecked('owner', 'an admin issues keys of every owner')),
    async (ctx) => {
      ctx.status = 201
      ctx.body = await keys.issue({ owner: ctx.params.owner ?? '' })
    },
  )
  // a client revokes its own keys: the key of another one is a 404, as one that is not there
  const ownKey = owned('key', {
    param: 'id',
    find: async (id, { owner }: ApiKey) => (await keys.list(owner)).find((key) => key.id === id),
  })
  api.delete(
    '/keys/:id',
    operation({ summary: 'Revokes a key of the client' }),
    withAuth(client, ownKey),
    async (ctx) => {
      await keys.revoke(ctx.request.objects.key.id)
      ctx.status = 204
    },
  )
  const sealed = seal(api, { public: ['GET /api/health', 'docs'], objects: true })
  const app = new Koa().use(sealed.routes()).use(sealed.allowedMethods())

  // The first key issues the others. It is printed once, because the store has only its digest
  const isFirst = NEW_KEY === '1' || (await keys.list('admin')).length === 0
  const key = isFirst ? (await keys.issue({ owner: 'admin', scopes: ['admin'] })).key : '$KEY'
  const lost = isFirst ? [] : ['($KEY is what the first start printed; NEW_KEY=1 npm start issues another one)']
  const toTry = (url: string) => [`curl -i -H "X-API-Key: ${key}" -X POST ${url}/keys/acme`, ...lost]
  return { app, keys, close, toTry }
}

/** The application, for `koa-with-auth audit`. */
export default () => service('file::memory:').then(({ app }) => app)
