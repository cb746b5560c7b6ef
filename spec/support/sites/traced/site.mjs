/**
 * Prints what a small site answers and reports about itself, as JSON: it must be the same with a tracer and without.
 *
 * tracedSite.ts starts it as a separate process, because tracers patch modules when they are loaded.
 */
import http from 'node:http'
import Router from '@koa/router'
import Koa from 'koa'
import { also, apiApp, apiKeyHeader, httpBearer, withAuth } from 'koa-with-auth'
import { openApi } from 'koa-with-auth/openapi'
import { audit, seal } from 'koa-with-auth/audit'

const staff = httpBearer({ authenticate: (_request, token) => token === 's' && { user: 'anna' } })
const partner = apiKeyHeader({ authenticate: (_request, key) => key === 'p' && { client: 'Acme' } })
const tell = (ctx) => {
  ctx.body = ctx.request.auth ?? 'public'
}
// A new one each time, because OpenTelemetry wraps a function once
const makeCors = () =>
  function cors(_ctx, next) {
    return next()
  }
let hooked = 0
const hook = (_id, _ctx, next) => {
  hooked++
  return next()
}

const makeApi = (cors) => {
  const api = apiApp({ title: 'Traced', prefix: '/api', auth: staff })
  const opened = withAuth(null)(new Router()).get('/again', tell)
  const reports = withAuth(null)(new Router()).get('/reports', tell)
  const own = new Router().get('/own/:id', withAuth(partner), tell).get('/both', withAuth(also(partner)), tell)
  api.use(cors).get('/me/:id', tell).get('/health', withAuth(null), tell).param('id', hook)
  // "applied again, it replaces", and "the call that mounts a router" (R06)
  return api.use(withAuth(staff)(opened).routes()).use(withAuth(partner)(reports).routes()).use(own.routes())
}
const makePlain = () =>
  new Router().get('/plain/:id', withAuth(staff), tell).get('/open', withAuth(null), tell).param('id', hook)

const makeListed = (cors) => new Router().use(cors).get('/listed', withAuth(staff), tell)

const get = (port, path, headers = {}) =>
  new Promise((resolve, reject) => {
    http
      .get({ host: '127.0.0.1', port, path, headers }, (response) => {
        let text = ''
        response.on('data', (chunk) => (text += chunk))
        response.on('end', () => resolve({ status: response.statusCode, text }))
      })
      .on('error', reject)
  })

const answersOf = async (app, paths) => {
  app.silent = true
  const server = http.createServer(app.callback())
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address()
  const answers = {}
  for (const path of paths) {
    for (const [who, headers] of [
      ['anonymous', {}],
      ['staff', { Authorization: 'Bearer s' }],
      ['partner', { key: 'p' }],
    ]) {
      const before = hooked
      const { status, text } = await get(port, path, headers)
      answers[`${path} ${who}`] = [status, status === 200 && path !== '/api/docs' ? text : '', hooked - before]
    }
  }
  server.closeAllConnections()
  server.close()
  return answers
}

const securityOf = (router) =>
  Object.entries(openApi(router, { title: 'Traced', version: '1' }).paths).map(([path, { get: described }]) => [
    path,
    described?.security,
  ])

const said = (tell_) => {
  try {
    return tell_()
  } catch (error) {
    return `${error.name}: ${error.message}`
  }
}
const views = (router, options) => ({
  audit: said(() => JSON.parse(JSON.stringify(audit(router)))),
  openApi: said(() => securityOf(router)),
  seal: said(() => seal(router, options) && 'sealed'),
  late: said(() => router.get('/late', tell) && 'taken'),
})

const sites = {
  api: {
    make: makeApi,
    open: ['GET /api/health', 'GET /api/docs', 'GET /api/openapi.json'],
    paths: [
      '/api/me/1',
      '/api/health',
      '/api/again',
      '/api/reports',
      '/api/own/1',
      '/api/both',
      '/api/docs',
      '/api/openapi.json',
    ],
  },
  plain: { make: makePlain, open: ['GET /open'], paths: ['/plain/1', '/open'] },
  listed: { make: makeListed, open: [], paths: ['/listed'] },
}

const report = {}
for (const [name, { make, open, paths }] of Object.entries(sites)) {
  const asked = globalThis.traced?.(name) ?? { use: () => {}, result: () => [] }
  const made = () => {
    const cors = makeCors()
    return [make(cors), { public: open, middleware: [cors] }]
  }
  const [unsealed, options] = made()
  const app = new Koa()
  asked.use(app)
  app.use(unsealed.routes())
  const answers = await answersOf(app, paths)
  const [sealed, sealedOptions] = made()
  const before = views(sealed, sealedOptions)
  const sealedApp = new Koa()
  asked.use(sealedApp)
  report[name] = {
    before,
    answers,
    after: views(unsealed, options),
    // Sealed after app.use, and still served
    answersThen: await answersOf(app, paths),
    mounted: said(() => sealedApp.use(sealed.routes()) && 'mounted'),
    answersSealed: await answersOf(sealedApp, paths),
    remounted: await answersOf(new Koa().use(new Router().use('/v1', sealed.routes()).routes()), [`/v1${paths[0]}`]),
    traced: asked.result(),
  }
}
process.stdout.write(JSON.stringify(report), () => process.exit(0))
