/**
 * The workflows of GitHub: they are YAML, run pinned actions with the least permissions, and see the whole history. What a
 * contributor installs.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { repository } from '../support/projects/typecheck.js'

interface Step {
  readonly uses?: string
  readonly run?: string
  readonly with?: Readonly<Record<string, unknown>>
}
interface Job {
  readonly uses?: string
  readonly permissions?: Readonly<Record<string, string>>
  readonly steps?: ReadonlyArray<Step>
  readonly 'timeout-minutes'?: number
}
interface Workflow {
  readonly permissions: Readonly<Record<string, string>>
  readonly jobs: Readonly<Record<string, Job>>
}

const folder = `${repository}.github/workflows/`
const workflows = readdirSync(folder).map((name) => ({
  name,
  // Safe: the checks below notice another form
  workflow: parse(readFileSync(folder + name, 'utf8')) as Workflow,
}))
const jobs = workflows.flatMap(({ name, workflow }) =>
  Object.entries(workflow.jobs).map(([job, content]) => ({ name: `${name}, ${job}`, steps: [], ...content })),
)
const steps = jobs.flatMap(({ steps: all }) => all)

// What a job may do beyond reading the repository, and why it must
const allowed: Readonly<Record<string, ReadonlyArray<string>>> = {
  // npm trusts the identity of this job, so there is no token
  'release.yml, publish': ['id-token'],
  'release.yml, bill-of-materials': ['contents'],
  'security.yml, codeql': ['security-events'],
  'security.yml, scorecard': ['security-events', 'id-token'],
}

describe('the workflows', () => {
  it.each(workflows)('$name: reads the repository, and each job writes only what it must', ({ workflow }) => {
    expect(workflow.permissions).toStrictEqual({ contents: 'read' })
  })

  it.each(jobs)('$name: may do no more than it needs, and ends', ({ name, permissions = {}, uses, ...job }) => {
    const written = Object.keys(permissions).filter((one) => permissions[one] !== 'read')
    expect(written.sort()).toStrictEqual([...(allowed[name] ?? [])].sort())
    if (uses === undefined) expect(job['timeout-minutes']).toBeGreaterThan(0)
  })

  it('pin each action of others by its commit', () => {
    const actions = steps.flatMap(({ uses }) => uses ?? [])
    expect(actions.length).toBeGreaterThan(5)
    expect(actions.filter((one) => !/^[\w-]+\/[\w./-]+@[\da-f]{40}$/.test(one))).toStrictEqual([])
  })

  it('see all commits, because a figure is compared with the release, and keep no credential', () => {
    const checkouts = steps.filter(({ uses }) => uses?.startsWith('actions/checkout@'))
    expect(checkouts.length).toBeGreaterThan(3)
    for (const { with: given } of checkouts)
      expect(given).toMatchObject({ 'fetch-depth': 0, 'persist-credentials': false })
  })

  it('look for mistakes, ask the registry for signatures, and publish with provenance and a bill of materials', () => {
    const uses = steps.map((step) => step.uses?.replace(/@.*/, ''))
    for (const one of ['github/codeql-action/analyze', 'ossf/scorecard-action']) expect(uses).toContain(one)
    const commands = steps.map(({ run = '' }) => run).join('\n')
    for (const one of ['npm audit signatures', 'npm publish --provenance', 'npm sbom', '.ci/run']) {
      expect(commands).toContain(one)
    }
    expect(commands).not.toMatch(/NODE_AUTH_TOKEN|NPM_TOKEN/)
  })
})

interface Locked {
  readonly packages: Readonly<Record<string, Readonly<Partial<Record<'os' | 'cpu' | 'libc', ReadonlyArray<string>>>>>>
}

describe('npm ci', () => {
  const read = (path: string): unknown => JSON.parse(readFileSync(repository + path, 'utf8'))
  // what a folder needs, and nothing else
  const folders = ['.ci', '.ci/mutants', 'spec/apps', 'spec/bench', 'spec/peers']
  // Safe: npm wrote it
  const { packages } = read('package-lock.json') as Locked
  const fits = (allowed: ReadonlyArray<string> | undefined, own: string) =>
    allowed === undefined || allowed.includes(own) || allowed.every((one) => one.startsWith('!') && one !== `!${own}`)

  it('installs at most 750 packages on Linux', () => {
    const installed = Object.entries(packages).filter(
      ([path, { os, cpu, libc }]) => path !== '' && fits(os, 'linux') && fits(cpu, 'x64') && fits(libc, 'glibc'),
    )
    expect(installed.length).toBeLessThanOrEqual(750)
  })

  it.each(folders)('%s has its own packages, which npm start, npm test and npm run lint do without', (folder) => {
    // Safe: it is a manifest of this repository
    const manifest = read(`${folder}/package.json`) as Readonly<Record<string, Readonly<Record<string, string>>>>
    const tools =
      /^(?:typedoc|publint|@arethetypeswrong|@stryker-mutator|@babel\/|(?:babel-|ts-)?jest$|autocannon|better-auth)/
    const its = Object.keys({ ...manifest['dependencies'], ...manifest['devDependencies'] })
    expect(its.filter((name) => tools.test(name))).not.toEqual([])
    expect(its.filter((name) => tools.test(name) && `node_modules/${name}` in packages)).toEqual([])
  })
})

describe('.ci/run in a clone of depth 1', () => {
  const folder = mkdtempSync(join(tmpdir(), 'koa-with-auth-shallow-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const origin = join(folder, 'origin')
  const identity = ['-c', 'user.name=a', '-c', 'user.email=a@example.com']
  const git = (cwd: string, ...args: ReadonlyArray<string>) =>
    execFileSync('git', [...identity, ...args], { cwd, encoding: 'utf8' }).trim()
  const commit = (releases: ReadonlyArray<object>): string => {
    writeFileSync(join(origin, 'spec/bench/releases.json'), JSON.stringify(releases))
    git(origin, 'add', '.')
    git(origin, 'commit', '-q', '-m', 'one')
    return git(origin, 'rev-parse', 'HEAD')
  }
  const inClone = (name: string) => {
    git(folder, 'clone', '-q', '--depth=1', `file://${origin}`, name)
    const clone = join(folder, name)
    const { status, stdout } = spawnSync('node', ['.ci/released.mjs'], { cwd: clone, encoding: 'utf8' })
    return { status, stdout, commits: git(clone, 'rev-list', '--all', '--count') }
  }
  beforeAll(() => {
    for (const path of ['spec/bench', '.ci']) mkdirSync(join(origin, path), { recursive: true })
    cpSync(`${repository}.ci/released.mjs`, join(origin, '.ci/released.mjs'))
    git(origin, 'init', '-q')
  })

  it('compares with the release that it fetches, and says so where there is none to fetch', () => {
    const released = commit([])
    commit([{ commit: released }])
    expect(inClone('a')).toEqual({ status: 0, stdout: '', commits: '1' })
    const unknown = '0123456789012345678901234567890123456789'
    commit([{ commit: released }, { commit: unknown }])
    expect(inClone('b')).toMatchObject({ status: 1, stdout: expect.stringContaining(unknown) as string })
  })

  it('asks for nothing else of the history', () => {
    const lines = readFileSync(`${repository}.ci/run`, 'utf8').split('\n')
    const withHistory = lines.filter((line) => /\bgit\b|--against/.test(line))
    expect(withHistory).toEqual([expect.stringMatching(/^if node \.ci\/released\.mjs; then step .* --against release/)])
  })
})
