/** `koa-with-auth audit` as a program: on the example API, on good applications and on broken ones. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { commandProject, type CommandProject } from '../support/projects/auditCommand.js'
import { repository } from '../support/projects/typecheck.js'

let project: CommandProject
beforeAll(() => {
  project = commandProject()
})
afterAll(() => project?.remove())

const lock = (name: string) => readFileSync(join(project.folder, name), 'utf8')

describe('the example API', () => {
  it('agrees with examples/api/auth.lock', async () => {
    const file = `${repository}examples/api/auth.lock`
    const result = await project.run('audit', 'examples/api/policy.js', '--check', file)
    expect(result).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/auth\.lock: no difference\n$/) })
  })
})

describe('an application that is audited', () => {
  it('is printed as a table; with --export, another export is; CommonJS works, too', async () => {
    const [esm, router, app] = await Promise.all([
      project.run('audit', './esm.mjs'),
      project.run('audit', './commonjs.cjs', '--export', 'router'),
      project.run('audit', './commonjs.cjs', '--export', 'app', '--json'),
    ])
    expect(esm).toMatchObject({ code: 0, stderr: '' })
    expect(esm.stdout).toMatch(/^OPERATION +PROTECTED BY +DECIDED BY +NOTES\nGET \/api\/me +bearer +router \/api\n/)
    expect(router).toMatchObject({ code: 0, stdout: expect.stringMatching(/\nGET \/me +bearer +router\n$/) })
    const { operations } = JSON.parse(app.stdout) as { readonly operations: ReadonlyArray<object> }
    const me = { operation: 'GET /me', access: 'guarded', protection: 'bearer', csrf: 'not needed' }
    expect(operations).toMatchObject([me])
  })

  it('may listen if it is the main module', async () => {
    const { code, stdout, stderr } = await project.run('audit', './idiom.cjs')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/\nGET \/me +bearer/)
  })

  it('may have timers, connections and output: the command ends, and prints only the result', async () => {
    const { code, stdout, stderr } = await project.run('audit', './busy.mjs')
    expect(stdout).toMatch(/^OPERATION /)
    expect(stdout).not.toContain('hello')
    expect(stderr).toContain('hello from the module')
    expect(code).toBe(0)
  })

  it('may be printed into a pipe that closes early', () => {
    const run = `"${process.execPath}" node_modules/koa-with-auth/dist/command/main.js audit esm.mjs | head -n 1`
    const piped = execFileSync('sh', ['-c', run], { cwd: project.folder })
    expect(piped.toString()).toMatch(/^OPERATION .*\n$/)
  })
})

describe('the policy file', () => {
  it('is written, agrees with the application that it was written from, and reports what has changed', async () => {
    const made = await project.run('audit', 'esm.mjs', '--write', 'auth.lock')
    expect(made).toMatchObject({ code: 0, stdout: 'auth.lock: 5 lines written\n', stderr: '' })
    expect(lock('auth.lock').split('\n').slice(2)).toStrictEqual([
      'GET /api/export; who=[bearer]; by=router /api; csrf=not needed; docs=listed',
      'GET /api/health; who=public; by=operation; csrf=not needed; docs=listed',
      'GET /api/me; who=[bearer]; by=router /api; csrf=not needed; docs=listed',
      'GET /api/old; who=[bearer]; by=router /api; csrf=not needed; docs=listed',
      'POST /api/order; who=[API key in cookie sid]; by=operation; csrf=checked; docs=listed',
      '',
    ])
    const [same, changed, sarif, json] = await Promise.all([
      project.run('audit', 'esm.mjs', '--check', 'auth.lock'),
      project.run('audit', 'changed.mjs', '--check', 'auth.lock'),
      project.run('audit', 'changed.mjs', '--check', 'auth.lock', '--sarif'),
      project.run('audit', 'changed.mjs', '--check', 'auth.lock', '--json'),
    ])
    expect(same).toMatchObject({ code: 0, stdout: 'auth.lock: no difference\n', stderr: '' })
    expect(changed).toMatchObject({ code: 1, stderr: '' })
    expect(changed.stdout.split('\n')).toStrictEqual([
      'auth.lock: 3 differences',
      'opened:',
      '  GET /api/export: was bearer, is public; decided by: was router /api, is operation',
      'changed:',
      '  GET /api/new: was absent, is API key in cookie sid',
      'closed:',
      '  GET /api/old: was bearer, is gone',
      'If this is meant: koa-with-auth audit changed.mjs --write auth.lock',
      '',
    ])
    expect(sarif.code).toBe(1)
    const [run] = (JSON.parse(sarif.stdout) as { runs: [{ results: { ruleId: string; level: string }[] }] }).runs
    expect(run.results.map(({ ruleId, level }) => [ruleId, level])).toStrictEqual([
      ['policy-opened', 'error'],
      ['policy-changed', 'warning'],
      ['policy-closed', 'note'],
    ])
    expect(json.code).toBe(1)
    const opened = { direction: 'opened', operation: 'GET /api/export' }
    expect(JSON.parse(json.stdout)).toMatchObject({ differences: [opened, {}, {}] })
  })
})

it('--openapi lists the differences of document and guards, first where the guards admit more', async () => {
  const { code, stdout } = await project.run('audit', 'esm.mjs', '--openapi', 'openapi.json')
  expect(code).toBe(1)
  expect(stdout.split('\n')).toStrictEqual([
    'openapi.json: 5 differences',
    'opened:',
    '  GET /api/health: the document says bearer, the guards demand nothing',
    'changed:',
    '  POST /api/order: is not in the document, and the guards demand API key in cookie sid',
    '  GET /api/export: is not in the document, and the guards demand bearer',
    '  GET /api/old: is not in the document, and the guards demand bearer',
    'closed:',
    '  GET /api/gone: is in the document, but no route answers it',
    '',
  ])
})

describe('a refused command has exit code 2, one line on stderr and nothing on stdout', () => {
  it.each<[command: string, line: string]>([
    ['audit ./no\u001b.js', './no\\u{1b}.js: no such file'],
    ['audit .', '.: is not a file'],
    ['audit listens.mjs', 'listens.mjs: listens; export the application from a module that does not'],
    ['audit throws.cjs', 'throws.cjs: throws: Error: no\\u{1b}[2J database at all'],
    [
      'audit unsealed.mjs',
      "unsealed.mjs: throws: TypeError: seal(router): 1 finding - GET /api/health is public: guard it, or list 'GET /api/health' in public",
    ],
    ['audit ./commonjs.cjs', './commonjs.cjs: exports several that can be audited: app, router; choose with --export'],
    ['audit esm.mjs --check missing.lock', 'missing.lock: no such file or folder'],
    ['audit esm.mjs --check broken.lock', 'broken.lock: line 3 is not a line of a policy file'],
    ['audit nothing.mjs --export app', 'nothing.mjs: has no export "app"; it exports answer, options'],
    ['audit exits.mjs', 'exits.mjs: ends the process, or never ends loading'],
    ['audit hangs.mjs', 'hangs.mjs: ends the process, or never ends loading'],
    ['audit esm.mjs --chek auth.lock', "Unknown option '--chek'; see koa-with-auth --help"],
    ['', 'a command is missing; there are audit and sql; see koa-with-auth --help'],
  ])('%j', async (command, line) => {
    const { code, stdout, stderr } = await project.run(...command.split(' ').filter((one) => one !== ''))
    expect({ code, stdout, stderr }).toStrictEqual({ code: 2, stdout: '', stderr: `koa-with-auth: ${line}\n` })
  })
})

it('--help and --version print their text', async () => {
  const [help, version] = await Promise.all([project.run('--help'), project.run('--version')])
  expect(help).toMatchObject({ code: 0, stderr: '' })
  expect(help.stdout).toMatch(/^Usage: koa-with-auth audit <module>/)
  const manifest = JSON.parse(readFileSync(`${repository}package.json`, 'utf8')) as { readonly version: string }
  expect(version).toMatchObject({ code: 0, stderr: '', stdout: `${manifest.version}\n` })
})
