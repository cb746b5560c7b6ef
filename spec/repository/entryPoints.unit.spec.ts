/** Every entry point loads. The tests import them, because some runners do not report a file that fails to load. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { ownOptions, repository } from '../support/projects/typecheck.js'

const entryPoints: Readonly<Record<string, () => Promise<object>>> = {
  'koa-with-auth': () => import('koa-with-auth'),
  'koa-with-auth/audit': () => import('koa-with-auth/audit'),
  'koa-with-auth/keys': () => import('koa-with-auth/keys'),
  'koa-with-auth/passwords': () => import('koa-with-auth/passwords'),
  'koa-with-auth/events': () => import('koa-with-auth/events'),
  'koa-with-auth/fp': () => import('koa-with-auth/fp'),
  'koa-with-auth/jwt': () => import('koa-with-auth/jwt'),
  'koa-with-auth/openapi': () => import('koa-with-auth/openapi'),
  'koa-with-auth/sessions': () => import('koa-with-auth/sessions'),
  'koa-with-auth/sign-in': () => import('koa-with-auth/sign-in'),
  'koa-with-auth/sign-in/passkeys': () => import('koa-with-auth/sign-in/passkeys'),
  'koa-with-auth/sign-in/oidc': () => import('koa-with-auth/sign-in/oidc'),
  'koa-with-auth/testing': () => import('koa-with-auth/testing'),
  'koa-with-auth/testing/laws': () => import('koa-with-auth/testing/laws'),
  'koa-with-auth/stores': () => import('koa-with-auth/stores'),
  'koa-with-auth/signatures': () => import('koa-with-auth/signatures'),
  'koa-with-auth/upgrades': () => import('koa-with-auth/upgrades'),
  'koa-with-auth/webhooks': () => import('koa-with-auth/webhooks'),
}

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

describe('entry points', () => {
  it.each(Object.entries(entryPoints))('%s: loads and has exports', async (_name, load) => {
    expect(Object.keys(await load())).not.toEqual([])
  })

  it('are those that package.json exports', () => {
    expect(exported.map(({ name }) => name).sort()).toStrictEqual(Object.keys(entryPoints).sort())
  })

  it.each(exported)('$name: `import`, `require` and tsconfig name the same module', (entry) => {
    const { path, name, built } = entry
    const [source] = ownOptions().paths?.[name] ?? []
    const file = path === '.' ? 'index' : path.slice(2)
    const at = (folder: string) => ({ types: `${folder}${file}.d.ts`, default: `${folder}${file}.js` })
    // `typesVersions` finds them by this pattern, for resolvers that do not read `exports`
    expect(built).toStrictEqual({ import: at('./dist/'), require: at('./dist/cjs/') })
    expect(source).toBe(path === '.' ? './src/index.ts' : `./src/${file}/index.ts`)
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

  it('are few: at most 45 values at the root, and 20 ways in beside the schema', async () => {
    expect(Object.keys(await import('koa-with-auth')).length).toBeLessThanOrEqual(45)
    expect(exported.length).toBeLessThanOrEqual(20)
    expect(Object.keys(manifest.exports).filter((path) => path.endsWith('.schema.json'))).toHaveLength(1)
  })
})
