/** `npm create koa-with-auth`: what it writes is installed with the packed library, tested and started. */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { start } from '../support/papers/examplesProcess.js'
import { freePort } from '../support/servers/redisServer.js'
import { packedProject, type PackedProject } from '../support/projects/packed.js'
import { mailServer } from '../support/servers/mailServer.js'
import { expectGracefulEnd } from '../support/sites/templateProcess.js'
import { ask } from '../support/servers/server.js'
import { repository } from '../support/projects/typecheck.js'

const templates = ['tokens', 'keys', 'sessions', 'site']
const own = `${repository}examples/create`

interface Manifest extends Readonly<Record<'name' | 'bin' | 'version', string>> {
  readonly files: ReadonlyArray<string>
  readonly scripts: Readonly<Record<string, string>>
  readonly dependencies: Readonly<Record<string, string>>
}
// Safe: it is a package.json of this repository, or one that the program wrote
const manifestIn = (folder: string) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest

let around: string
beforeAll(() => {
  around = realpathSync(mkdtempSync(join(tmpdir(), 'koa-with-auth-create-')))
})
afterAll(() => rmSync(around, { recursive: true, force: true }))

const create = (...args: ReadonlyArray<string>) => {
  const { status, stderr } = spawnSync(process.execPath, [join(own, manifestIn(own).bin), ...args], {
    cwd: around,
    encoding: 'utf8',
  })
  return { status, stderr }
}

const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))

describe('the package create-koa-with-auth', () => {
  it('has the version of the library, one program, and few lines', () => {
    const { name, version, files } = manifestIn(own)
    expect({ name, version }).toEqual({ name: 'create-koa-with-auth', version: manifestIn(repository).version })
    expect(files).toEqual(['create.js', 'templates'])
    const linesOf = (paths: string[]) =>
      paths.flatMap((path) => readFileSync(path, 'utf8').trimEnd().split('\n')).length
    const [site, others] = [true, false].map((isSite) =>
      filesBelow(own).filter((path) => path.includes('/templates/site/') === isSite),
    ) as [string[], string[]]
    expect(linesOf(others)).toBeLessThanOrEqual(540)
    expect(linesOf(site.filter((path) => path.includes('/src/')))).toBeLessThanOrEqual(1120)
  })

  it('names every template in its README, and the README of the repository names the command', () => {
    const readme = readFileSync(join(own, 'README.md'), 'utf8')
    for (const template of templates) expect(readme).toContain(`\`${template}\``)
    expect(readFileSync(`${repository}README.md`, 'utf8')).toContain('npm create koa-with-auth')
  })
})

it('prints how it is called, and writes nothing', () => {
  const before = filesBelow(around)
  const printed = execFileSync(process.execPath, [join(own, 'create.js'), '--help'], { cwd: around, encoding: 'utf8' })
  expect(printed).toMatch(/^usage: npm create koa-with-auth my-app -- --template tokens\|keys\|sessions\|site/)
  expect(filesBelow(around)).toEqual(before)
})

describe('what it refuses', () => {
  const refused = (args: ReadonlyArray<string>, message: RegExp) => {
    const before = filesBelow(around)
    const { status, stderr } = create(...args)
    expect(status).toBe(1)
    expect(stderr).toMatch(message)
    expect(stderr).not.toMatch(/\n {4}at /)
    expect(filesBelow(around)).toEqual(before)
  }

  it.each(['My App', '', ...'../up a/b @scope/app /absolute . .. .hidden _app APP http koa'.split(' ')])(
    'the name %j, which npm refuses, which is a path, or which is taken',
    (name) => refused([name, '--template', 'keys'], /is no name|another package/),
  )
  it('an unknown template', () =>
    refused(['app', '--template', 'oauth'], /no template "oauth"[\s\S]*tokens\|keys\|ses/))
  it('an unknown option', () => refused(['app', '--templates', 'keys'], /--templates/))
  it.each([
    ['site', 'passkeys'],
    ['keys', 'devices'],
  ])('the template %s with %s', (template, more) =>
    refused(['app', '--template', template, '--with', more], /there is --with devices, for the template site/),
  )
  it('a packed library that is not there', () =>
    refused(['app', '--template', 'keys', '--library', '../none.tgz'], /there is no file \.\.\/none\.tgz/))
  it('two names', () => refused(['app', 'tokens'], /one name/))
  it('a folder that is not empty, hidden files included', () => {
    for (const [name, file] of [
      ['full', 'a.txt'],
      ['hidden', '.env'],
    ] as const) {
      mkdirSync(join(around, name))
      writeFileSync(join(around, name, file), '')
      refused([name, '--template', 'keys'], /not empty/)
    }
  })
  it('a file with the name', () => {
    writeFileSync(join(around, 'file'), '')
    refused(['file', '--template', 'keys'], /not empty/)
  })
  it('a question without a terminal: it says which option is missing', () => {
    refused(['app'], /--template/)
    refused(['--template', 'keys'], /name/)
  })
})

describe('what it writes', () => {
  it('goes into an empty folder, with the version of the library that was asked for', () => {
    mkdirSync(join(around, 'empty'))
    expect(create('empty', '--template', 'keys', '--library', '1.2.3')).toEqual({ status: 0, stderr: '' })
    expect(manifestIn(join(around, 'empty')).dependencies['koa-with-auth']).toBe('1.2.3')
    expect(create('usual', '--template', 'keys').status).toBe(0)
    expect(manifestIn(join(around, 'usual')).dependencies['koa-with-auth']).toBe(`^${manifestIn(own).version}`)
  })
})

describe.each([...templates, 'site --with devices'])('the template %s', (variant) => {
  const [template = '', ...more] = variant.split(' ')
  const name = more.length > 0 ? 'devices-app' : `${template}-app`
  const folder = () => join(around, name)
  let packed: PackedProject
  beforeAll(() => {
    packed = packedProject([])
    writeFileSync(join(around, 'library.tgz'), readFileSync(packed.tarball))
    expect(create(name, '--template', template, ...more, '--library', './library.tgz').status).toBe(0)
    execFileSync('npm', ['install', '--prefer-offline', '--no-audit'], { cwd: folder(), stdio: 'pipe' })
  })
  afterAll(() => packed?.remove())

  it('has what the study had: sources, tests, a policy file and a container file', () => {
    const manifest = manifestIn(folder())
    expect(manifest.name).toBe(name)
    expect(Object.keys(manifest.scripts)).toEqual(['start', 'test', 'policy'])
    expect(existsSync(join(folder(), 'src/devices.ts'))).toBe(more.length > 0)
    const sources = filesBelow(join(folder(), 'src')).map((path) => readFileSync(path, 'utf8'))
    expect(sources.filter((text) => /\/\/ devices$/m.test(text))).toEqual([])
    expect(sources.some((text) => text.includes('bearer: true'))).toBe(more.length > 0)
    for (const file of ['tsconfig.json', 'auth.lock', 'Dockerfile', '.gitignore', 'src/app.ts', 'test/app.test.ts']) {
      expect(existsSync(join(folder(), file)), file).toBe(true)
    }
  })

  it('makes an image from the folder alone, with a volume only if it keeps something', () => {
    expect(manifestIn(folder()).dependencies['koa-with-auth']).toBe('file:library.tgz')
    expect(existsSync(join(folder(), 'library.tgz'))).toBe(true)
    const image = readFileSync(join(folder(), 'Dockerfile'), 'utf8')
    expect(image).toContain('RUN npm ci && npx tsc && npm prune --omit=dev')
    expect(image).toContain(
      `HEALTHCHECK CMD node -e "fetch('http://127.0.0.1:3000${template === 'site' ? '' : '/api'}/health')`,
    )
    expect(/\/data|DATABASE_URL/.test(image)).toBe(template !== 'tokens')
  })

  // If a guard's line in the policy changed on purpose, change the auth.lock of the template
  it('passes its own tests, and its policy file is as `npm run policy` writes it', () => {
    const { VITEST: _, NODE_ENV: __, ...env } = process.env
    const run = (script: string) =>
      spawnSync('npm', ['run', script], { cwd: folder(), encoding: 'utf8', env: { ...env, NODE_ENV: 'test' } })
    const { status, stdout, stderr } = run('test')
    expect({ status, output: status === 0 ? '' : stdout + stderr }).toEqual({ status: 0, output: '' })
    const before = readFileSync(join(folder(), 'auth.lock'), 'utf8')
    expect(run('policy').status).toBe(0)
    expect(readFileSync(join(folder(), 'auth.lock'), 'utf8')).toBe(before)
  })

  it('serves on PORT: the docs page, and nothing without a credential', async () => {
    const port = await freePort()
    const running = start(folder(), 'npm', ['start'], { PORT: String(port), NODE_ENV: 'development' })
    if (template === 'site') {
      await running.printed('The site is at')
      expect((await ask(`http://127.0.0.1:${port}/sign-in`)).status).toBe(200)
      expect((await ask(`http://127.0.0.1:${port}/account`)).status).toBe(401)
      running.signal('SIGTERM')
      await running.exited
      return
    }
    await running.printed('curl')
    const url = `http://127.0.0.1:${port}/api`
    expect(running.output.stdout).toContain(`${url}/docs`)
    expect((await ask(`${url}/docs`)).status).toBe(200)
    const path = { tokens: '/notes', keys: '/reports', sessions: '/me' }[template] ?? ''
    expect((await ask(url + path)).status).toBe(401)
    expect((await ask(`${url}/docs`, { method: 'DELETE' })).status).toBe(405)
    expect(running.output.stderr.replace(/^npm (?:warn|notice).*\n/gm, '')).toBe('')
    running.signal('SIGTERM')
    await running.exited
  })

  it.runIf(template === 'site')('sends mails by SMTP in production, and ends gracefully', async () => {
    const { url, mail } = await mailServer()
    const port = await freePort()
    const origin = 'https://my.example'
    const env = { NODE_ENV: 'production', KEYS: 'k'.repeat(32), ORIGIN: origin, SMTP_URL: url, HOST: '127.0.0.1' }
    const running = start(folder(), process.execPath, ['dist/src/server.js'], { ...env, PORT: String(port) })
    await running.printed(`The site is at ${origin}`)
    const body = new URLSearchParams({ address: 'anna@example.com' })
    await ask(`http://127.0.0.1:${port}/sign-up`, { method: 'POST', body, headers: { 'X-Forwarded-Proto': 'https' } })
    const sent = await mail()
    expect(sent).toContain('To: anna@example.com')
    expect(sent.replace(/=\n/g, '')).toContain(`${origin}/password?`)
    running.signal('SIGTERM')
    expect(await running.exited).toBe(0)
    await expectGracefulEnd(folder(), 'dist/src/server.js', { ...env, NODE_ENV: 'test' })
  })

  it('does not start in production with the secrets of the demonstration', () => {
    const own = { NODE_ENV: 'production', PORT: '0', ...(template === 'keys' && { HOST: 'no host' }) }
    const env = { PATH: process.env['PATH'], ...own }
    const options = { cwd: folder(), encoding: 'utf8', env } as const
    const { status, stderr } = spawnSync(process.execPath, ['dist/src/server.js'], options)
    expect(status).not.toBe(0)
    expect(stderr).toMatch(
      { tokens: /set ISSUER/, sessions: /set KEYS/, site: /set KEYS/ }[template] ?? /ENOTFOUND|EAI_AGAIN/,
    )
  })
})
