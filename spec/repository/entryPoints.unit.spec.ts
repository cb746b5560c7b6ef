/** Every entry point loads. The tests import them, because some runners do not report a file that fails to load. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { repository } from '../support/projects/typecheck.js'

interface Built {
  readonly types: string
  readonly default: string
}
// Safe: it is the package.json of this repository
const manifest = JSON.parse(readFileSync(`${repository}package.json`, 'utf8')) as {
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, Built>>>>
}
const exported = Object.entries(manifest.exports).flatMap(([path, built]) =>
  typeof built === 'string' ? [] : [{ path, name: `koa-with-auth${path.slice(1)}`, built }],
)

// package.json alone registers them: the compiler, the runner of tests and the build derive the source of each
const fileOf = (path: string) => (path === '.' ? 'index' : path.slice(2))
const sourceOf = (path: string) => (path === '.' ? 'src/index.ts' : `src/${fileOf(path)}/index.ts`)

describe('entry points', () => {
  it.each(exported)('$name: loads, has exports, and a row in the table of the README', async ({ path, name }) => {
    expect(Object.keys((await import(/* @vite-ignore */ repository + sourceOf(path))) as object)).not.toEqual([])
    if (path !== '.')
      expect(readFileSync(`${repository}README.md`, 'utf8')).toMatch(new RegExp(`^\\| \`${name}\` +\\| \\S`, 'm'))
  })

  it.each(exported)('$name: `import` and `require` name the module that is built of its folder', ({ path, built }) => {
    const file = fileOf(path)
    const at = (folder: string) => ({ types: `${folder}${file}.d.ts`, default: `${folder}${file}.js` })
    // `typesVersions` finds them by this pattern, for resolvers that do not read `exports`
    expect(built).toStrictEqual({ import: at('./dist/'), require: at('./dist/cjs/') })
  })

  it('are all folders of the sources that have an index', () => {
    const indexes = readdirSync(`${repository}src`, { recursive: true, encoding: 'utf8' })
      .filter((file) => /(?:^|\/)index\.ts$/.test(file))
      .map((file) => `src/${file}`)
    expect(indexes.toSorted()).toStrictEqual(exported.map(({ path }) => sourceOf(path)).toSorted())
  })

  it('the programs beside other libraries, which no test runs, import what is exported', async () => {
    const folder = `${repository}spec/peers/src/`
    const programs = readdirSync(folder).map((file) => readFileSync(folder + file, 'utf8'))
    const imports = programs.flatMap((text) => [
      ...text.matchAll(/\{([^{}]*)\}\s*(?:=|from)\s*(?:await import\()?'[./]+dist\/([\w/-]+)\.js'/g),
    ])
    expect(imports.length).toBeGreaterThan(10)
    for (const [, names = '', file = ''] of imports) {
      const known = Object.keys(
        (await import(/* @vite-ignore */ `${repository}src/${file === 'index' ? '' : `${file}/`}index.ts`)) as object,
      )
      expect(known).toEqual(expect.arrayContaining(names.split(',').flatMap((name) => name.trim() || [])))
    }
  })

  it('the root has what every application needs; documents, audit, sessions and tests are in other entry points', async () => {
    const names = Object.keys(await import('koa-with-auth'))
    const beside = ['openApi', 'docs', 'cachedOpenApi', 'audit', 'seal', 'sessions', 'withPrincipal']
    expect(names).toEqual(expect.arrayContaining(['withAuth', 'operation', 'apiApp']))
    expect(names.filter((name) => beside.includes(name))).toStrictEqual([])
  })

  it('the root does not export the internals of the package', async () => {
    const { AuthError, Challenge, ...root } = await import('koa-with-auth')
    expect(root).not.toHaveProperty('Requirement')
    expect(Object.keys(Challenge)).not.toContain('token')
    expect(Object.keys(AuthError)).toContain('Semigroup')
    expect(Object.keys(await import('koa-with-auth/audit'))).not.toContain('table')
  })

  it('the root has at most 45 values, and one schema is beside it', async () => {
    expect(Object.keys(await import('koa-with-auth')).length).toBeLessThanOrEqual(45)
    expect(Object.keys(manifest.exports).filter((path) => path.endsWith('.schema.json'))).toHaveLength(1)
  })
})
