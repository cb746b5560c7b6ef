/** The package as users get it: packed, installed outside of the repository, typechecked, and used over HTTP. */
import { execFile, execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs' // prettier-ignore
import { isBuiltin } from 'node:module'
import { dirname, join, posix } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { blocksOf } from '../support/papers/docExamples.js'
import { packedProject, type PackedProject } from '../support/projects/packed.js'
import { ask } from '../support/servers/server.js'
import { ownOptions, repository, typecheck } from '../support/projects/typecheck.js'

// The first code block of the README makes `app`, and does not listen
const [example] = blocksOf('README.md')
const starter = `
import { app } from './example.js'
const server = app.listen(0, '127.0.0.1', () => {
  const address = server.address()
  console.log(typeof address === 'object' && address !== null ? address.port : 'no port')
})
`

interface Built {
  readonly types: string
  readonly default: string
}
const manifest = JSON.parse(readFileSync(`${repository}package.json`, 'utf8')) as {
  readonly peerDependencies: Readonly<Record<string, string>>
  readonly peerDependenciesMeta: Readonly<Record<string, { readonly optional?: boolean }>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly scripts: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, string | Readonly<Record<'import' | 'require', Built>>>>
}
const peers = Object.keys(manifest.peerDependencies)
const required = peers.filter((name) => !manifest.peerDependenciesMeta[name]?.optional)
const entries = Object.entries(manifest.exports).flatMap(([path, built]) =>
  typeof built === 'string' ? [] : [{ name: `koa-with-auth${path.slice(1)}`, built }],
)

// What users install beside it: the required peers, and the types that a TypeScript program needs
const beside = [...required, '@types/koa', '@types/node']

describe('the packed package', () => {
  let project: PackedProject
  beforeAll(() => {
    project = packedProject(beside)
  })
  afterAll(() => project?.remove())

  it('is built whenever it is packed, and before the tests that use it', () => {
    const { prepack, 'test:all': all } = manifest.scripts
    expect(prepack).toBe('npm run --silent build')
    expect(all).toMatch(/^npm run --silent build && /)
  })

  it('contains the built modules, their declarations and the papers, and nothing else', () => {
    const known =
      /^(dist\/.+\.(js|d\.ts)|dist\/(cjs\/)?peers\/[\w-]+\.cjs|dist\/cjs\/package\.json|dist\/[\w-]+\.schema\.json|dist\/(SKILL\.md|llms\.txt)|package\.json|README\.md|LICENSE)$/
    expect(project.files.filter((path) => !known.test(path))).toStrictEqual([])
    const built = ['index.js', 'index.d.ts', 'cjs/index.js', 'SKILL.md', 'llms.txt'].map((name) => `dist/${name}`)
    expect(project.files).toEqual(expect.arrayContaining([...built, 'README.md', 'LICENSE']))
  })

  it('contains no examples and no specs, even if the examples were built', () => {
    const added = ['dist/examples/server.js', 'examples/mine.ts', 'spec/unit/mine.spec.ts', '.env']
    const files = project.listFiles(Object.fromEntries(added.map((path) => [path, ''])))
    expect(files.filter((path) => /example|(?:^|\/)spec\b|\.spec\.|\.test\.|\.env/i.test(path))).toStrictEqual([])
    expect(files).toContain('dist/index.js')
  })

  it('contains each entry point and each shared chunk once for each module system, and the program', () => {
    const modules = (folder: string) =>
      project.files
        .filter((file) => file.startsWith(folder) && file.endsWith('.js'))
        .map((file) => file.slice(folder.length))
    const required = modules('dist/cjs/')
    const imported = modules('dist/').filter((file) => !file.startsWith('cjs/'))
    expect(imported.filter((file) => file !== 'command/main.js')).toStrictEqual(required)
    expect(imported).toContain('command/main.js')
    const points = entries.map((one) => one.built.import.default.slice('./dist/'.length))
    expect(required.filter((file) => !file.startsWith('chunks/')).sort()).toStrictEqual(points.sort())
    // how many chunks there are, not how many modules the sources have, decides how long an application loads
    expect(required.length).toBeLessThan(90)
  })

  const ran = (code: string, type = 'module') =>
    spawnSync(process.execPath, [`--input-type=${type}`, '-e', code], { cwd: project.folder, encoding: 'utf8' })
  const printedBy = (code: string, type?: string): unknown => {
    const { stdout, stderr } = ran(code, type)
    return JSON.parse(stdout || expect.fail(stderr))
  }

  it.each([
    ['sessions', 'koa-session'],
    ['sign-in/oidc', 'openid-client'],
    ['sign-in/passkeys', '@simplewebauthn/server'],
    ['signatures', 'structured-headers'],
    ['testing/laws', 'fast-check'],
  ])('koa-with-auth/%s without %s says what to install, as often as it is loaded', (entry, needed) => {
    const message = `koa-with-auth/${entry} needs ${needed}: npm install ${needed}`
    const load = (how: string) => `
      const messages = []
      for (let time = 0; time < 2; time += 1) {
        try { ${how}('koa-with-auth/${entry}') } catch ({ message }) { messages.push(message) }
      }
      console.log(JSON.stringify(messages))`
    expect(printedBy(load('await import'))).toEqual([message, message])
    expect(printedBy(load('require'), 'commonjs')).toEqual([message, message])
  })

  const read = (file: string) => readFileSync(join(project.folder, 'node_modules/koa-with-auth', file), 'utf8')
  const importsOf = (file: string) => ts.preProcessFile(read(file)).importedFiles.map(({ fileName }) => fileName)
  const reached = (types: ReadonlyArray<string>) => {
    const needed = new Set(types.map(posix.normalize))
    for (const file of needed) {
      for (const name of importsOf(file)) {
        if (name.startsWith('.')) needed.add(posix.join(posix.dirname(file), name.replace(/\.js$/, '.d.ts')))
      }
    }
    return [...needed].sort()
  }

  it('has each declaration that an entry point needs, and no other, and both module systems have the same', () => {
    const known = project.files.filter((file) => file.endsWith('.d.ts'))
    const required = reached(entries.map((one) => one.built.require.types))
    expect(required.filter((file) => !file.startsWith('dist/cjs/'))).toStrictEqual([])
    const imported = reached(entries.map((one) => one.built.import.types))
    const own = imported.filter((file) => !file.startsWith('dist/cjs/'))
    // an ES module has its own copy of what the types of the router are in, and passes on the rest
    const copies = own.filter((file) => !/^export \* from '[./]+cjs\/[\w/-]+\.js';\n$/.test(read(file)))
    expect(copies.map((file) => file.replace('dist/', 'dist/cjs/')).filter((file) => !known.includes(file))).toEqual([])
    expect(copies.length).toBeLessThan(own.length / 2)
    expect([...new Set([...required, ...imported])].sort()).toStrictEqual(known.toSorted())
  })

  it('has declarations that need an optional package only where the entry point itself does', () => {
    const named = entries.flatMap(({ name, built }) =>
      [...new Set(reached([built.require.types]).flatMap(importsOf))]
        .filter((one) => manifest.peerDependenciesMeta[one]?.optional)
        .map((one) => `${name} ${one}`),
    )
    expect(named).toStrictEqual(['koa-with-auth/sign-in/oidc openid-client'])
  })

  it('R09 ES modules are imported where a merge has written to all objects', () => {
    const written = "Object.prototype.merged = 'yes'; await import('koa-with-auth')"
    expect(ran(written)).toMatchObject({ status: 0, stderr: '' })
  })

  it.each(['import', 'require'])('by %s: a mistake shows its message, not the whole module that throws', (how) => {
    const [load, type] = how === 'import' ? ['await import', 'module'] : ['require', 'commonjs']
    const { stderr } = ran(`const { httpBearer } = ${load}('koa-with-auth')\nhttpBearer(() => true)`, type)
    const [place, line = '', , , message] = stderr.split('\n')
    expect(place).toMatch(/\/koa-with-auth\/dist\/(?:cjs\/)?chunks\/\w+\.js:\d+$/)
    expect(line.length, line).toBeLessThan(500)
    expect(message).toBe('TypeError: httpBearer takes an object of options, not a function')
  })

  it.each([
    { tool: 'publint', options: ['run', '--strict'] },
    { tool: 'attw', options: ['--format', 'ascii', '--no-emoji', '--no-definitely-typed'] },
  ])('has no problem that $tool finds, in all resolution modes', async ({ tool, options }) => {
    const command = join(repository, '.ci/node_modules/.bin', tool)
    await promisify(execFile)(command, [...options, project.tarball]).catch(({ stdout }: { readonly stdout: string }) =>
      expect.fail(`${tool}\n${stdout}`),
    )
  })

  // What a module loads, including the modules that it imports
  const needed = (entry: string): ReadonlySet<string> => {
    const modules = new Set([entry])
    const packages = new Set<string>()
    for (const module of modules) {
      const { importedFiles } = ts.preProcessFile(read(module), true, true)
      for (const { fileName } of importedFiles) {
        if (fileName.startsWith('.')) modules.add(posix.join(posix.dirname(module), fileName))
        else if (!isBuiltin(fileName)) packages.add(/^(@[^/]+\/)?[^/]+/.exec(fileName)?.[0] ?? fileName)
      }
    }
    return packages
  }
  const own = ['@koa/router', 'fp-ts', 'io-ts', 'ipaddr.js', 'path-to-regexp', 'path-to-regexp-6']
  it.each([
    { entry: 'index', optional: [] },
    { entry: 'audit', optional: [] },
    { entry: 'openapi', optional: [] },
    { entry: 'sessions', optional: ['koa-session'] },
    { entry: 'stores', optional: [] },
    { entry: 'testing', optional: ['koa'] },
    { entry: 'testing/laws', optional: ['koa', 'fast-check'] },
  ])('loads with $entry only Node, the required peers, the dependencies, and $optional', ({ entry, optional }) => {
    const allowed = [...own, ...optional]
    expect([...needed(`dist/${entry}.js`)].filter((name) => !allowed.includes(name))).toStrictEqual([])
    for (const name of optional) expect(needed(`dist/${entry}.js`)).toContain(name)
  })

  it.each(['await import', 'require'])(
    'by %s: the root loads nothing of fp-ts and io-ts, and has what it needs of them',
    (load) => {
      const counting = `${requiring}
      ${load}('koa-with-auth')
      console.log(JSON.stringify(Object.keys(require.cache).filter((path) => /node_modules.(?:fp|io)-ts./.test(path))))`
      expect(printedBy(counting)).toStrictEqual([])
    },
  )

  describe('the packed package with all of its peers', () => {
    let folder = ''
    beforeAll(() => {
      folder = anotherCopy(project, 'peers', peers)
    })
    const run = (code: string, ...options: ReadonlyArray<string>): unknown => {
      const args = [...options, '--input-type=module', '-e', `${requiring}${code}`]
      return JSON.parse(execFileSync(process.execPath, args, { cwd: folder, encoding: 'utf8' }))
    }

    it('`import` and `require` have the same names in every entry point', () => {
      const compared = run(`
        const compared = {}
        for (const entry of ${JSON.stringify(entries.map(({ name }) => name))}) {
          const imported = await import(entry)
          const required = require(entry)
          const names = [...new Set([...Object.keys(imported), ...Object.keys(required)])]
          compared[entry] = { isEmpty: names.length === 0, other: names.filter((one) => typeof imported[one] !== typeof required[one]) }
        }
        console.log(JSON.stringify(compared))`)
      expect(compared).toStrictEqual(
        Object.fromEntries(entries.map(({ name }) => [name, { isEmpty: false, other: [] }])),
      )
    })

    it.each([
      { how: 'ES modules', load: 'await import' },
      { how: 'CommonJS', load: 'require' },
    ])('an application is a router of the class that $how import', ({ load }) => {
      const code = `const [{ default: Router }, { apiApp }] = [${load}('@koa/router'), ${load}('koa-with-auth')]
        console.log(JSON.stringify([apiApp() instanceof Router, apiApp().get('/', () => {}) instanceof Router]))`
      expect(run(code)).toStrictEqual([true, true])
    })

    it('an error of `import` is an instance of the class of `require`, and the other way round', () => {
      const found = run(`
        const made = { AuthEndedError: 'expired', SignInRefused: { _tag: 'absent' }, LawViolations: ['a', []] }
        const found = {}
        for (const entry of ${JSON.stringify(entries.map(({ name }) => name))}) {
          const [imported, required] = [await import(entry), require(entry)]
          for (const [name, one] of Object.entries(imported)) {
            if (!(one?.prototype instanceof Error)) continue
            const other = required[name]
            const make = (type) => Reflect.construct(type, [made[name] ?? 'a message'].flat(1))
            found[name] = [one !== other, make(one) instanceof other, make(other) instanceof one, new Error() instanceof one]
          }
        }
        console.log(JSON.stringify(found))`)
      const shared = [true, true, true, false]
      const names = [
        'AuthEndedError',
        'UnavailableError',
        'NoLiveKey',
        'SignInRefused',
        'UpstreamGone',
        'LawViolations',
      ]
      expect(found).toEqual(Object.fromEntries(names.map((name) => [name, shared])))
    })

    it('`sessions` of `import` and sign-in of `require` share a store, a session and its end', () => {
      const answers = run(`
        import Koa from 'koa'
        import Router from '@koa/router'
        import { withAuth } from 'koa-with-auth'
        import { sessions } from 'koa-with-auth/sessions'
        const esm = { memoryStore: (await import('koa-with-auth/stores')).memoryStore }
        const cjs = { ...require('koa-with-auth'), ...require('koa-with-auth/stores'), ...require('koa-with-auth/sessions') }
        const server = async (sessionsOf, store, guardOf) => {
          const app = new Koa()
          app.keys = ['0123456789abcdef0123456789abcdef']
          const { logIn, logOut, sessionAuth } = sessionsOf(app, { name: 'shop', store, identify: ({ name }) => name, loadUser: async (name) => ({ name }) })
          const router = new Router()
          router.post('/in', guardOf.withAuth(null), async (ctx) => { await logIn(ctx, { name: 'anna' }); ctx.status = 204 })
          router.get('/me', guardOf.withAuth(sessionAuth()), (ctx) => { ctx.body = ctx.request.auth.name })
          router.post('/out', guardOf.withAuth(sessionAuth()), async (ctx) => { await logOut(ctx); ctx.status = 204 })
          app.use(router.routes())
          const listening = app.listen(0, '127.0.0.1')
          await new Promise((resolve) => listening.on('listening', resolve))
          return { listening, url: 'http://127.0.0.1:' + listening.address().port }
        }
        const answers = []
        for (const [first, second, store] of [[sessions, cjs.sessions, cjs.memoryStore()], [cjs.sessions, sessions, esm.memoryStore()]]) {
          const one = await server(first, store, cjs)
          const other = await server(second, store, { withAuth })
          const made = await fetch(one.url + '/in', { method: 'POST' })
          const cookie = made.headers.getSetCookie().map((each) => each.split(';')[0]).join('; ')
          const status = async ({ url }, path, method = 'GET') => (await fetch(url + path, { method, headers: { cookie } })).status
          answers.push([made.status, await status(one, '/me'), await status(other, '/me'), await status(other, '/out', 'POST'), await status(one, '/me')])
          for (const { listening } of [one, other]) listening.close()
        }
        console.log(JSON.stringify(answers))`)
      const expected = [204, 200, 200, 204, 401]
      expect(answers).toEqual([expected, expected])
    })

    it('ES modules do not load the router twice', () => {
      const code = `
        const { apiApp } = await import('koa-with-auth')
        const { docs } = await import('koa-with-auth/openapi')
        docs(apiApp(), { title: 'Pets', version: '1' })
        console.log(JSON.stringify(Object.keys(require.cache).filter((path) => /node_modules.@koa.router/.test(path))))`
      expect(run(code)).toStrictEqual([])
    })

    const jwt = `
      import { generateKeyPairSync, sign } from 'node:crypto'
      import { httpJwt } from 'koa-with-auth/jwt'
      import { mockRequest, withBearer } from 'koa-with-auth/testing'
      const { publicKey, privateKey } = generateKeyPairSync('ed25519')
      const issuer = { issuer: 'https://a.example', jwks: { keys: [publicKey.export({ format: 'jwk' })] } }
      const part = (json) => Buffer.from(JSON.stringify(json)).toString('base64url')
      const claims = { iss: issuer.issuer, aud: 'b', exp: 9e9, sub: 'anna' }
      const content = part({ alg: 'EdDSA' }) + '.' + part(claims)
      const token = content + '.' + sign(null, Buffer.from(content), privateKey).toString('base64url')
      const decided = () => httpJwt({ issuer, audience: 'b' })(mockRequest(withBearer(token)))()`

    it('ES modules verify tokens, also where CommonJS cannot require ES modules', () => {
      const code = `${jwt}\nconsole.log(JSON.stringify((await decided()).right.sub))`
      expect(run(code, '--no-experimental-require-module')).toBe('anna')
    })

    it('ES modules in Jest run the package, jwt included', async () => {
      const code = `${jwt}
        import Router from '@koa/router'
        import { apiApp } from 'koa-with-auth'
        ${entries.map(({ name }) => `import '${name}'`).join('\n')}
        test('an application, a token', async () => {
          expect(apiApp() instanceof Router).toBe(true)
          expect((await decided()).right.sub).toBe('anna')
        })`
      writeFileSync(join(folder, 'es.test.js'), code)
      const args = ['--experimental-vm-modules', join(repository, 'spec/apps/node_modules/jest/bin/jest.js')]
      const options = ['--config', '{ "transform": {} }', '--rootDir', folder]
      const { stderr } = await promisify(execFile)(process.execPath, [...args, ...options], { cwd: folder })
      expect(stderr).toContain('1 passed, 1 total')
    })
  })

  describe('two installed copies in one process', () => {
    let printed: { areTwo: boolean; answers: Record<string, string>; audited: string[]; sealed: string }
    beforeAll(() => {
      anotherCopy(project, 'other', [])
      const program = join(project.folder, 'twoCopies.mjs')
      writeFileSync(program, twoCopies)
      printed = JSON.parse(
        execFileSync(process.execPath, [program], { cwd: project.folder, encoding: 'utf8' }),
      ) as typeof printed
    })

    it('are different copies', () => {
      expect(printed.areTwo).toBe(true)
    })

    const noKey = '401 ApiKey realm="api", in="header", name="key"'
    it.each([
      ['replaced, no credential', noKey],
      ['replaced, the token of the level that it replaces', noKey],
      ['replaced, its own key', '200 {"client":"Acme"}'],
      ['public', '200 null'],
      ['added, both', '200 {"inherited":{"user":"anna"},"own":{"client":"Acme"}}'],
      ['added, one', noKey],
      ['application, no credential', '401 Bearer realm="of the application"'],
      ['application, its token', '200 {"user":"anna"}'],
      ['application, an exception', '409 null'],
      ['application, mounted: it decides itself', '401 Bearer realm="of the application"'],
      ['beside the application', noKey],
    ])('%s: %s', (asked, expected) => {
      expect(printed.answers[asked]).toBe(expected)
    })

    it('share guards: the audit and `seal` of one copy read the guards of the other', () => {
      expect(printed.audited).toStrictEqual([
        'GET /replaced: API key in header key (router)',
        'GET /public: public (operation)',
        'GET /added: all of (bearer, and API key in header key) (router, operation)',
      ])
      expect(printed.sealed).toContain('GET /public is public')
    })
  })

  it('packages that were not requested are not installed', () => {
    const dependencies = ['ipaddr.js', 'openapi-types', 'path-to-regexp', 'path-to-regexp-6']
    expect(Object.keys(manifest.dependencies ?? {}).sort()).toStrictEqual(dependencies)
    for (const name of ['koa-session', 'swagger-ui-dist', 'fast-check', '@libsql/client']) {
      expect(existsSync(join(project.folder, 'node_modules', name))).toBe(false)
    }
  })

  it('the command audits a CommonJS application that has another copy of the package', () => {
    const copy = join(anotherCopy(project, 'audited', []), 'node_modules/koa-with-auth/dist/cjs/index.js')
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
      'USE /api/*; who=unguarded; runs=authSettings',
      'GET /api/health; who=public; by=operation; csrf=not needed; docs=listed',
      'GET /api/hidden; who=[bearer]; by=router /api; csrf=not needed; docs=hidden',
      'GET /api/me; who=[bearer]; by=router /api; csrf=not needed; docs=listed',
      'POST /api/order; who=[API key in cookie key]; by=operation; csrf=off; docs=listed',
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
    })
    afterAll(() => child?.kill())

    it('5.3.1 answers 200 to the token, with the principal', async () => {
      const { status, text } = await ask(`${url}/me`, { headers: { Authorization: 'Bearer supersecret' } })
      expect([status, text]).toStrictEqual([200, 'Hello anna'])
    })

    it.each<[string, Record<string, string>, string]>([
      ['5.1.4 no token', {}, 'Bearer realm="api"'],
      ['5.1.2 another token', { Authorization: 'Bearer x' }, 'Bearer realm="api", error="invalid_token"'],
    ])('answers 401 to %s, with a challenge', async (_, headers, expected) => {
      const { status, challenge, text } = await ask(`${url}/me`, { headers })
      expect([status, challenge]).toStrictEqual([401, expected])
      expect(JSON.parse(text)).toMatchObject({ status: 401, detail: 'Unauthorized' })
    })
  })
})

// Beside the packages of the project, with these packages of the repository
const anotherCopy = (project: PackedProject, name: string, packages: ReadonlyArray<string>): string => {
  const folder = join(project.folder, name)
  const modules = join(folder, 'node_modules')
  cpSync(join(project.folder, 'node_modules/koa-with-auth'), join(modules, 'koa-with-auth'), { recursive: true })
  for (const one of packages) {
    mkdirSync(dirname(join(modules, one)), { recursive: true })
    symlinkSync(realpathSync(`${repository}node_modules/${one}`), join(modules, one))
  }
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name, private: true, type: 'module' }))
  return folder
}

const requiring = `
import { createRequire } from 'node:module'
const require = createRequire(process.cwd() + '/program.js')
`

const esModules = { module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler }

// Each level is made by the copy that did not make the outer level; the other copy comes from `require`
const twoCopies = `
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import Router from '@koa/router'
import Koa from 'koa'
import * as esm from 'koa-with-auth'
import { audit, seal } from 'koa-with-auth/audit'
const cjs = createRequire(resolve('other/program.js'))('koa-with-auth')

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
