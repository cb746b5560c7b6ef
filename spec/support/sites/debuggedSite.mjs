/** A site that sends requests to itself, in a separate process, because NODE_DEBUG is read when a process starts. */
import { channel } from 'node:diagnostics_channel'
import Router from '@koa/router'
import Koa from 'koa'
import { apiKeyHeader, authSettings, httpBearer, UnavailableError, withAuth } from 'koa-with-auth'

const [, , secret] = process.argv
const user = httpBearer({ schemeName: 'user', authenticate: (_request, token) => token === secret && { name: secret } })
const key = apiKeyHeader({ paramName: 'X-Key', authenticate: () => false })
const answer = (ctx) => {
  ctx.body = 'in'
}

const reports = withAuth(user)(new Router({ prefix: '/reports' }))
reports.get('/:id', answer)
const plain = new Router()
plain.get('/either', withAuth([key, user]), answer)
plain.get('/open', withAuth(null), answer)
plain.get(
  '/down',
  withAuth(httpBearer({ schemeName: 'user', authenticate: () => Promise.reject(new UnavailableError()) })),
  answer,
)

const app = new Koa()
app.use(authSettings({ events: { subject: ({ name }) => name } }))
app.use(reports.routes())
app.use(plain.routes())
const server = app.listen(0, '127.0.0.1', async () => {
  const ask = async (path, headers = {}) => {
    const response = await fetch(`http://127.0.0.1:${server.address().port}${path}?key=${secret}`, { headers })
    await response.text()
  }
  console.error('ASKED')
  await ask('/reports/7', { Authorization: `Bearer ${secret}` })
  await ask('/reports/7', { Authorization: `Bearer ${secret}x` })
  await ask('/either', { 'X-Key': secret })
  await ask('/open')
  await ask('/down', { Authorization: 'Bearer x' })
  console.log(channel('koa-with-auth:decision').hasSubscribers)
  server.close()
  server.closeAllConnections()
})
