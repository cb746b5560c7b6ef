/** Applications for the command `koa-with-auth audit`, good ones and broken ones, in a project with the built package. */
import { compiled, exampleSources, userProject } from './userProject.js'

/** The routes of an application, as an ES module. `more` adds registrations. */
const routes = (more: string) => `
import Router from '@koa/router'
import { apiKeyCookie, httpBearer, withAuth } from 'koa-with-auth'
const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
const cookie = apiKeyCookie({ paramName: 'sid', authenticate: (_request, key) => key === 'k' && { user: 'anna' } })
const router = withAuth(bearer)(new Router({ prefix: '/api' }))
const go = (ctx) => { ctx.body = 'ok' }
router.get('/me', go).post('/order', withAuth(cookie), go).get('/health', withAuth(null), go)
${more}`

const before = "router.get('/export', go).get('/old', go)"
const after = `router.get('/export', withAuth(null), go).get('/new', withAuth(cookie), go)`

// Leaves something running, and uses stdout
const busy = `
import Koa from 'koa'
import { router } from './esm.mjs'
console.log('hello from the module')
setInterval(() => {}, 1000)
process.on('exit', () => { process.exitCode = 7 })
export const createApp = async () => new Koa().use(router.routes())
export default createApp`

const commonjs = `
const Router = require('@koa/router')
const Koa = require('koa')
const { httpBearer, withAuth } = require('koa-with-auth')
const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
const router = withAuth(bearer)(new Router()).get('/me', (ctx) => { ctx.body = 'ok' })
const app = new Koa().use(router.routes())
module.exports = { router, app }`

const files = {
  'esm.mjs': `${routes(before)}\nexport { router }`,
  'changed.mjs': `${routes(after)}\nexport { router }`,
  'busy.mjs': busy,
  'commonjs.cjs': commonjs,
  'idiom.cjs': `${commonjs}.app\nif (require.main === module) app.listen(3000)`,
  'listens.mjs': `import Koa from 'koa'\nexport const app = new Koa()\napp.listen(0, () => process.stdout.write('LISTENS'))`,
  'throws.cjs': `throw new Error('no\\u001b[2J database\\nat all')`,
  'unsealed.mjs': `${routes('')}\nimport { seal } from 'koa-with-auth/audit'\nseal(router)\nexport { router }`,
  'nothing.mjs': `export const answer = 42\nexport const options = {}`,
  'exits.mjs': `process.exit(0)`,
  'hangs.mjs': `await new Promise(() => {})\nexport {}`,
  'broken.lock': '# koa-with-auth policy 2\nGET /x; who=[bearer]; by=operation; csrf=not needed; docs=listed\nGET /y\n',
  'openapi.json': JSON.stringify({
    openapi: '3.1.0',
    paths: {
      '/api/me': { get: { security: [{ token: [] }] } },
      '/api/health': { get: { security: [{ token: [] }] } },
      '/api/gone': { get: {} },
    },
    components: { securitySchemes: { token: { type: 'http', scheme: 'Bearer' } } },
  }),
}

export type CommandProject = ReturnType<typeof commandProject>

/** Makes a project with these applications, and with the example API below `examples`. */
export const commandProject = () => {
  const built = exampleSources().map((path) => [path.replace(/ts$/, 'js'), compiled(path)] as const)
  const project = userProject([], { ...files, ...Object.fromEntries(built) })
  /** Runs `koa-with-auth` with these arguments, as `npx` does. */
  const run = (...args: ReadonlyArray<string>) =>
    project.node('node_modules/koa-with-auth/dist/command/main.js', ...args)
  return { ...project, run }
}
