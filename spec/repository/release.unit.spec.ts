/** A release: what it needs, and what it publishes. */
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { repository } from '../support/projects/typecheck.js'

const manifests = ['package.json', 'examples/create/package.json']
const bench = ['spec/bench/releases.json', 'spec/bench/figures.json']
const read = (path: string) => readFileSync(repository + path, 'utf8')

describe('npm run release', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'koa-with-auth-release-'))
    mkdirSync(join(folder, 'examples/create'), { recursive: true })
    mkdirSync(join(folder, 'spec/bench'), { recursive: true })
    for (const path of [...manifests, ...bench, '.ci/release.mjs', 'CHANGELOG.md']) {
      cpSync(repository + path, join(folder, path))
    }
    execFileSync('git', ['init', '-q'], { cwd: folder })
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const release = (...args: ReadonlyArray<string>) =>
    spawnSync(process.execPath, ['.ci/release.mjs', ...args], { cwd: folder, encoding: 'utf8' })

  it('asks for what is missing, and changes nothing', () => {
    const { status, stderr } = release('9.9.9')
    expect(status).toBe(1)
    for (const path of manifests) expect(readFileSync(join(folder, path), 'utf8')).toBe(read(path))
    expect(stderr).not.toContain('package.json')
    expect(stderr).toContain('"## 9.9.9"')
    expect(stderr).toContain('commit or remove your changes')
  })

  it('asks for a version', () => {
    expect(release().stderr).toContain('name the version')
    expect(release('next').stderr).toContain('name the version')
  })

  it('asks for the fields that npm shows and that provenance compares', () => {
    const path = join(folder, 'package.json')
    writeFileSync(path, JSON.stringify({ name: 'p', version: '0.0.0' }))
    const { status, stderr } = release('9.9.9')
    expect(status).toBe(1)
    for (const field of ['repository', 'bugs', 'homepage', 'license', 'description', 'publishConfig'])
      expect(stderr).toContain(`- package.json: set "${field}"`)
    writeFileSync(path, read('package.json'))
  })

  it('keeps the figures of each release, and what later commits are compared with', () => {
    const write = (path: string, content: string) => writeFileSync(join(folder, path), content)
    const git = (...args: ReadonlyArray<string>) => execFileSync('git', args, { cwd: folder, encoding: 'utf8' }).trim()
    // without dependencies, so that npm asks no registry
    for (const path of manifests) {
      const shown = { repository: 'r', bugs: 'b', homepage: 'h', license: 'MIT', description: 'd' }
      write(path, JSON.stringify({ name: 'p', version: '0.0.0', ...shown, publishConfig: { access: 'public' } }))
    }
    write('CHANGELOG.md', '\n## 9.9.9\n\nNot released yet.\n\n## 9.9.8\n')
    expect(release('9.9.9').stderr).toContain('say when 9.9.9 was released')
    write('CHANGELOG.md', '\n## 9.9.9\n\n2026-01-31\n\n## 9.9.8\n')
    git('config', 'user.name', 'a')
    git('config', 'user.email', 'a@b.example')
    git('add', '-A')
    git('commit', '-q', '-m', 'all')
    const commit = git('rev-parse', 'HEAD')

    expect(release('9.9.9')).toMatchObject({ status: 0 })
    // Safe: the script has just written it
    const releases = JSON.parse(readFileSync(join(folder, 'spec/bench/releases.json'), 'utf8')) as ReadonlyArray<object>
    const title = 'Beside the check written by hand, all kinds in one application'
    expect(releases.at(-1)).toMatchObject({ version: '9.9.9', commit, figures: { [title]: expect.anything() } })
    expect([git('status', '--porcelain'), git('tag')]).toEqual(['', 'v9.9.9'])
  })
})

describe('both packages', () => {
  it.each(manifests)('%s is public, has provenance, and names its licence and engine', (path) => {
    // Safe: they are the manifests of this repository
    const manifest = JSON.parse(read(path)) as Readonly<Record<string, unknown>>
    expect(manifest['publishConfig']).toStrictEqual({ access: 'public', provenance: true })
    expect(manifest).toMatchObject({ license: 'MIT', engines: { node: '>=20.19' } })
  })

  it('are checked before a release: types, both module systems, size, and what would be published', () => {
    const { scripts } = JSON.parse(read('package.json')) as { readonly scripts: Readonly<Record<string, string>> }
    const steps = (scripts['release:check'] ?? '').split(' && ')
    expect(steps.map((step) => step.replace(/--silent |--ignore-scripts/g, '').trim())).toStrictEqual([
      'npm run typecheck',
      'npm run check:package',
      'npm run size',
      'npm publish --dry-run',
      'npm publish --dry-run ./examples/create',
    ])
  })
})

describe('the workflows', () => {
  it('test Node 20, 22 and 24, and the newest without failing', () => {
    const text = read('.github/workflows/ci.yml')
    expect(text).toContain('node: [20, 22, 24]')
    expect(text).toMatch(/node-version: latest/)
    expect(text).toMatch(/continue-on-error: true/)
  })

  it('publish by a tag, after the tests and the checks of the package, with provenance', () => {
    const text = read('.github/workflows/release.yml')
    expect(text).toMatch(/tags: \['v\*'\]/)
    expect(text).toMatch(/needs: test/)
    expect(text.indexOf('check:package')).toBeLessThan(text.indexOf('npm publish --provenance'))
    expect(text).toMatch(/id-token: write/)
  })
})
