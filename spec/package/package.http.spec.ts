/** The package as a user gets it: packed, installed outside of the repository, typechecked, and asked over HTTP. */
import { execFile, execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join, posix } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { blocksOf } from '../support/docExamples.js'
import { packedProject, type PackedProject } from '../support/packed.js'
import { ask } from '../support/server.js'
import { ownOptions, repository, typecheck } from '../support/typecheck.js'

// The first block of the README; it makes `app` and does not listen
const [example] = blocksOf('README.md')
const starter = `
import { app } from './example.js'
const server = app.listen(0, '127.0.0.1', () => {
  const address = server.address()
  console.log(typeof address === 'object' && address !== null ? address.port : 'no port')
})
`

const manifest = JSON.parse(readFileSync(`${repository}package.json`, 'utf8')) as {
  readonly peerDependencies: Readonly<Record<string, string>>
  readonly peerDependenciesMeta: Readonly<Record<string, { readonly optional?: boolean }>>
  readonly dependencies?: Readonly<Record<string, string>>
}
const required = Object.keys(manifest.peerDependencies).filter((name) => !manifest.peerDependenciesMeta[name]?.optional)

// What must be beside it: the peers that are not optional, and the types that a program in TypeScript needs
const beside = [...required, '@types/koa', '@types/node']

describe('the packed package', () => {
  let project: PackedProject
  beforeAll(async () => {
    project = await packedProject(beside)
  }, 180_000)
  afterAll(() => project?.remove())

  it('holds the built modules, their declarations, README, LICENSE and CHANGELOG, and nothing else', () => {
    const known =
      /^(dist\/.+\.(js|d\.ts)|dist\/cjs\/package\.json|dist\/[\w-]+\.schema\.json|package\.json|README\.md|LICENSE|CHANGELOG\.md)$/
    expect(project.files.filter((path) => !known.test(path))).toStrictEqual([])
    for (const path of [
      'dist/index.js',
      'dist/index.d.ts',
      'dist/cjs/index.js',
      'README.md',
      'LICENSE',
      'CHANGELOG.md',
    ]) {
      expect(project.files).toContain(path)
    }
  })

  it('holds no examples, no spec, no tests; also when examples were built', async () => {
    const files = await project.listFiles({
      'dist/examples/server.js': '',
      'examples/mine.ts': '',
      'spec/unit/mine.spec.ts': '',
      '.env': '',
    })
    expect(files.filter((path) => /example|(?:^|\/)spec\b|\.spec\.|\.test\.|\.env/i.test(path))).toStrictEqual([])
    expect(files).toContain('dist/index.js')
  })

  it('every module of the sources is in it, built as an ES module and as CommonJS', () => {
    const modules = readdirSync(`${repository}src`, { recursive: true, encoding: 'utf8' }).filter((path) =>
      /\.ts$/.test(path),
    )
    expect(modules.length).toBeGreaterThan(20)
    const program = /^command[\\/]/
    for (const path of modules) {
      const built = path.replace(/\.ts$/, '')
      // a program is run, and never imported
      if (program.test(path)) expect(project.files.filter((file) => file.includes(built))).toEqual([`dist/${built}.js`])
      else
        for (const folder of ['dist', 'dist/cjs']) {
          expect(project.files).toEqual(expect.arrayContaining([`${folder}/${built}.js`, `${folder}/${built}.d.ts`]))
        }
    }
  })

  it('both module systems fit in 400 KB', () => {
    expect(project.packedBytes).toBeLessThan(400_000)
  })

  it.each([
    { tool: 'publint', options: ['run', '--strict'] },
    { tool: 'attw', options: ['--format', 'ascii', '--no-emoji', '--no-definitely-typed'] },
  ])('$tool finds nothing, in all resolution modes', { timeout: 120_000 }, async ({ tool, options }) => {
    const command = join(repository, 'node_modules/.bin', tool)
    await promisify(execFile)(command, [...options, project.tarball]).catch(({ stdout }: { readonly stdout: string }) =>
      expect.fail(`${tool}\n${stdout}`),
    )
  })

  // What a module needs when it is loaded, the modules that it imports included
  const needed = (entry: string): ReadonlySet<string> => {
    const root = join(project.folder, 'node_modules/koa-with-auth')
    const modules = new Set([entry])
    const packages = new Set<string>()
    for (const module of modules) {
      const { importedFiles } = ts.preProcessFile(readFileSync(join(root, module), 'utf8'), true, true)
      for (const { fileName } of importedFiles) {
        if (fileName.startsWith('.')) modules.add(posix.join(posix.dirname(module), fileName))
        else if (!isBuiltin(fileName)) packages.add(/^(@[^/]+\/)?[^/]+/.exec(fileName)?.[0] ?? fileName)
      }
    }
    return packages
  }
  const own = ['@koa/router', 'fp-ts', 'io-ts', 'path-to-regexp', 'path-to-regexp-6']
  it.each([
    { entry: 'index', optional: [] },
    { entry: 'audit/index', optional: [] },
    { entry: 'openapi/index', optional: [] },
    { entry: 'sessions/index', optional: ['koa-session'] },
    { entry: 'sessions/sqliteStore', optional: ['@libsql/client'] },
    { entry: 'sessions/redisStore', optional: [] },
    { entry: 'testing/index', optional: ['koa'] },
    { entry: 'testing/laws/index', optional: ['koa', 'fast-check'] },
  ])('$entry loads nothing but Node, the peers that must be there, and $optional', ({ entry, optional }) => {
    const allowed = [...own, ...optional]
    expect([...needed(`dist/${entry}.js`)].filter((name) => !allowed.includes(name))).toStrictEqual([])
    for (const name of optional) expect(needed(`dist/${entry}.js`)).toContain(name)
  })

  it.each(['import', 'require'])('by %s the root loads at most 25 modules of fp-ts, never its barrel', (how) => {
    const load = how === 'import' ? "await import('koa-with-auth')" : "require('koa-with-auth')"
    const counting = `
      import { createRequire } from 'node:module'
      const require = createRequire(import.meta.url)
      ${load}
      const loaded = Object.keys(require.cache).filter((path) => /node_modules.fp-ts./.test(path))
      console.log(JSON.stringify(loaded))`
    const printed = execFileSync(process.execPath, ['--input-type=module', '-e', counting], { cwd: project.folder })
    const loaded = JSON.parse(printed.toString()) as string[]
    expect(loaded.length).toBeGreaterThan(0)
    expect(loaded.length).toBeLessThanOrEqual(25)
  })

  describe('its ES module and its CommonJS copy in one process', () => {
    interface Answers {
      readonly areTwo: boolean
      readonly answers: Readonly<Record<string, string>>
      readonly audited: ReadonlyArray<string>
      readonly sealed: string
    }
    let printed: Answers
    beforeAll(() => {
      const program = join(project.folder, 'twoCopies.mjs')
      writeFileSync(program, twoCopies)
      printed = JSON.parse(execFileSync(process.execPath, [program], { cwd: project.folder }).toString()) as Answers
    })

    it('are two copies', () => {
      expect(printed.areTwo).toBe(true)
    })

    it.each([
      { asked: 'replaced, no credential', expected: '401 ApiKey realm="api", in="header", name="key"' },
      {
        asked: 'replaced, the token of the level that it replaces',
        expected: '401 ApiKey realm="api", in="header", name="key"',
      },
      { asked: 'replaced, its own key', expected: '200 {"client":"Acme"}' },
      { asked: 'public', expected: '200 null' },
      { asked: 'added, both', expected: '200 {"inherited":{"user":"anna"},"own":{"client":"Acme"}}' },
      { asked: 'added, one', expected: '401 ApiKey realm="api", in="header", name="key"' },
      { asked: 'application, no credential', expected: '401 Bearer realm="of the application"' },
      { asked: 'application, its token', expected: '200 {"user":"anna"}' },
      { asked: 'application, an exception', expected: '409 null' },
      { asked: 'application, mounted: it decides itself', expected: '401 Bearer realm="of the application"' },
      { asked: 'beside the application', expected: '401 ApiKey realm="api", in="header", name="key"' },
    ])('$asked: $expected', ({ asked, expected }) => {
      expect(printed.answers[asked]).toBe(expected)
    })

    it('the audit and `seal` of one read the guards of the other', () => {
      expect(printed.audited).toStrictEqual([
        'GET /replaced: API key in header key (router)',
        'GET /public: public (operation)',
        'GET /added: all of (bearer, and API key in header key) (router, operation)',
      ])
      expect(printed.sealed).toContain('GET /public is public')
    })
  })

  it('what is not asked for is not installed', () => {
    expect(Object.keys(manifest.dependencies ?? {}).sort()).toStrictEqual([
      'openapi-types',
      'path-to-regexp',
      'path-to-regexp-6',
    ])
    for (const name of ['koa-session', 'swagger-ui-dist', 'fast-check', '@libsql/client']) {
      expect(existsSync(join(project.folder, 'node_modules', name))).toBe(false)
    }
  })

  it('its program audits a CommonJS application that has another copy of the package', () => {
    // by its path: `require('koa-with-auth')` is the ES module where Node can load one
    const copy = join(project.folder, 'node_modules/koa-with-auth/dist/cjs/index.js')
    const application = `
      const Router = require('@koa/router')
      const { authSettings, apiKeyCookie, httpBearer, operation, withAuth } = require(${JSON.stringify(copy)})
      const cookie = apiKeyCookie({ authenticate: () => false })
      const router = withAuth(httpBearer({ authenticate: () => false }))(new Router({ prefix: '/api' }))
      router.use(authSettings({ csrf: false }))
      router.get('/me', () => {}).get('/health', withAuth(null), () => {}).post('/order', withAuth(cookie), () => {})
      router.get('/hidden', operation({ undocumented: true }), () => {})
      module.exports = router`
    writeFileSync(join(project.folder, 'router.cjs'), application)
    const run = (...args: ReadonlyArray<string>) =>
      execFileSync(join(project.folder, 'node_modules/.bin/koa-with-auth'), ['audit', 'router.cjs', ...args], {
        cwd: project.folder,
        encoding: 'utf8',
      })
    run('--write', 'auth.lock')
    expect(readFileSync(join(project.folder, 'auth.lock'), 'utf8').split('\n').slice(2, -1)).toStrictEqual([
      'USE /api/*; unguarded authSettings',
      'GET /api/health; public; by operation; csrf not needed; docs listed',
      'GET /api/hidden; bearer; by router /api; csrf not needed; docs hidden',
      'GET /api/me; bearer; by router /api; csrf not needed; docs listed',
      'POST /api/order; API key in cookie key; by operation; csrf off; docs listed',
    ])
    expect(run('--check', 'auth.lock')).toBe('auth.lock: no difference\n')
  })

  describe("the README's example", () => {
    let child: ChildProcess
    let url = ''
    beforeAll(async () => {
      const { folder } = project
      const { paths: _, rootDir: __, ...options } = ownOptions()
      const programs = { example: example?.code ?? '', starter }
      const sources = Object.entries(programs).map(([name, code]) => {
        const path = join(folder, `${name}.ts`)
        writeFileSync(path, code)
        const { outputText } = ts.transpileModule(code, { compilerOptions: { ...options, ...esModules } })
        writeFileSync(join(folder, `${name}.js`), outputText)
        return path
      })
      const strict = { ...options, skipLibCheck: false, typeRoots: [join(folder, 'node_modules/@types')] }
      expect(typecheck(sources, strict, folder)).toStrictEqual([])
      child = spawn(process.execPath, ['starter.js'], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] })
      const ended = once(child, 'exit').then(() => Promise.reject(new Error('the program ended')))
      const [port] = (await Promise.race([once(createInterface(child.stdout!), 'line'), ended])) as [string]
      url = `http://127.0.0.1:${port}`
      ended.catch(() => {})
    }, 60_000)
    afterAll(() => child?.kill())

    it('5.3.1 answers 200 to the token, with the principal', async () => {
      const { status, text } = await ask(`${url}/me`, { headers: { Authorization: 'Bearer supersecret' } })
      expect([status, text]).toStrictEqual([200, 'Hello anna'])
    })

    it('5.6.4 answers 200 to anyone where null makes public', async () => {
      const { status, text } = await ask(`${url}/health`)
      expect([status, text]).toStrictEqual([200, 'ok'])
    })

    it.each([
      { description: '5.1.4 nothing', headers: {}, expected: 'Bearer realm="api"' },
      {
        description: '5.1.2 another token',
        headers: { Authorization: 'Bearer x' },
        expected: 'Bearer realm="api", error="invalid_token"',
      },
    ])('answers 401 to $description, with a challenge', async ({ headers, expected }) => {
      const { status, challenge, text } = await ask(`${url}/me`, { headers: new Headers(Object.entries(headers)) })
      expect([status, challenge]).toStrictEqual([401, expected])
      expect(JSON.parse(text)).toMatchObject({ status: 401, detail: 'Unauthorized' })
    })
  })
})

const esModules = { module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler }

// Each level by the copy that did not make the one above it
const twoCopies = `
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import Router from '@koa/router'
import Koa from 'koa'
import * as esm from 'koa-with-auth'
import { audit, seal } from 'koa-with-auth/audit'
const cjs = createRequire(import.meta.url)(resolve('node_modules/koa-with-auth/dist/cjs/index.js'))

const user = (copy) => copy.httpBearer({ authenticate: (_request, token) => token === 't' && { user: 'anna' } })
const client = (copy) => copy.apiKeyHeader({ authenticate: (_request, key) => key === 'k' && { client: 'Acme' } })
const handle = (ctx) => { ctx.body = JSON.stringify(ctx.request.auth ?? null) }

const replaced = cjs.withAuth(client(cjs))(esm.withAuth(user(esm))(new Router().get('/replaced', handle)))
const levels = esm.withAuth(user(esm))(new Router())
levels.get('/public', cjs.withAuth(null), handle)
levels.get('/added', cjs.withAuth(cjs.also(client(cjs))), handle)
const router = new Router().use(replaced.routes()).use(levels.routes())

class OutOfStock extends Error {}
const api = cjs.apiApp({ prefix: '/api', realm: 'of the application', auth: user(cjs) })
api.onError(OutOfStock, () => ({ status: 409, body: {} }))
api.get('/x', handle)
api.get('/fails', () => { throw new OutOfStock() })
const parent = esm.withAuth(client(esm))(new Router({ prefix: '/parent' }))
parent.use(api.routes()).get('/beside', handle)

const server = new Koa().use(router.routes()).use(api.routes()).use(parent.routes()).listen(0, '127.0.0.1', async () => {
  const ask = async (path, headers = {}) => {
    const answer = await fetch('http://127.0.0.1:' + server.address().port + path, { headers })
    return answer.status + ' ' + (answer.status === 200 ? await answer.text() : answer.headers.get('www-authenticate'))
  }
  const token = { Authorization: 'Bearer t' }
  const key = { key: 'k' }
  const answers = {
    'replaced, no credential': await ask('/replaced'),
    'replaced, the token of the level that it replaces': await ask('/replaced', token),
    'replaced, its own key': await ask('/replaced', key),
    'public': await ask('/public'),
    'added, both': await ask('/added', { ...token, ...key }),
    'added, one': await ask('/added', token),
    'application, no credential': await ask('/api/x'),
    'application, its token': await ask('/api/x', token),
    'application, an exception': await ask('/api/fails', token),
    'application, mounted: it decides itself': await ask('/parent/api/x', key),
    'beside the application': await ask('/parent/beside', token),
  }
  const audited = audit(router).operations.map((one) => one.operation + ': ' + one.protection + ' (' + one.decidedBy.join(', ') + ')')
  let sealed = 'sealed'
  try { seal(cjs.withAuth(user(cjs))(new Router()).use(router.routes())) } catch (error) { sealed = error.message }
  console.log(JSON.stringify({ areTwo: cjs.withAuth !== esm.withAuth, answers, audited, sealed }))
  server.close()
})
`
