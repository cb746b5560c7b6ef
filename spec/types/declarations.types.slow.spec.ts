/** The types of the packed declarations: exact where a principal is inferred, errors where a mistake is written. */
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packedProject, type PackedProject } from '../support/projects/packed.js'
import { peersProject, tsc } from '../support/projects/peersProject.js'
import { ownOptions, typecheck, type Mistake } from '../support/projects/typecheck.js'
import { mistakes, prelude } from './mistakes.js'

const fixtures = fileURLToPath(new URL('./fixtures', import.meta.url))
const named = readdirSync(fixtures)
const mistakenLine = prelude.split('\n').length + 1

// An error shows a type as an editor does
const shown = `
import { allOf, apiKeyHeader, httpBearer } from 'koa-with-auth'
const user = httpBearer({ authenticate: (_request, token) => token === 'x' && { name: token } })
const client = apiKeyHeader({ authenticate: (_request, key) => key === 'x' && { id: 7 } })
export const both: never = allOf({ user, client })
`

// What the compiler prints first or last of many overloads is all that a reader sees of a misplaced guard
const misplaced = `
import Router from '@koa/router'
import { apiApp, authorize, httpBearer, withAuth } from 'koa-with-auth'
const bearer = httpBearer({ authenticate: () => ({ user: 'anna' }) })
const router = withAuth(bearer)(new Router())
const api = apiApp({ title: 'Pets', version: '1.0.0', auth: bearer })
router.get('/', (ctx) => { ctx.body = 1 }, withAuth(bearer))
api.get('/', withAuth(bearer), (ctx) => { ctx.body = 1 }, withAuth(bearer))
router.use(withAuth(bearer))
api.use('/x', withAuth(bearer))
router.get('/', withAuth(bearer, authorize((one: { email: string }) => one.email === '')), () => {})
`
const late = 'write the guard after the path and at most three functions: router.get(path, withAuth(a), handler)'
const used = 'router.use takes no guard: write withAuth(a)(router), or router.get(path, withAuth(a), handler)'
const fixes = [
  ...[late, late, used, used],
  "Property 'email' is missing in type '{ user: string; }' but required in type '{ email: string; }'",
]

let project: PackedProject
beforeAll(() => {
  const beside = ['koa', '@koa/router', 'fp-ts', 'io-ts', 'jose', 'oauth4webapi', 'openid-client', 'valibot', 'zod']
  project = packedProject([...beside, '@types/koa', '@types/node'])
  cpSync(fixtures, project.folder, { recursive: true })
  mistakes.forEach(({ wrong, right }, at) => {
    writeFileSync(join(project.folder, `wrong${at}.ts`), `${prelude}\n${wrong}\n`)
    writeFileSync(join(project.folder, `right${at}.ts`), `${prelude}\n${right}\n`)
  })
})
afterAll(() => project?.remove())

describe('with the peers of the repository', () => {
  let found: Mistake[] = []
  const of = (file: string) => found.filter((one) => basename(one.file) === file)

  beforeAll(() => {
    writeFileSync(join(project.folder, 'shown.ts'), shown)
    writeFileSync(join(project.folder, 'misplaced.ts'), misplaced)
    const { paths: _, ...options } = ownOptions()
    const names = readdirSync(project.folder).filter((name) => name.endsWith('.ts'))
    const files = names.map((name) => join(project.folder, name))
    const next = { module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext }
    const typeRoots = [join(project.folder, 'node_modules/@types')]
    const strict = { ...options, ...next, skipLibCheck: false, typeRoots, noUnusedLocals: false }
    found = typecheck(files, strict, project.folder)
  })

  it('the declarations and those that they import have no mistake (skipLibCheck: false)', () => {
    expect(found.filter(({ file }) => file === '' || file.includes('node_modules'))).toStrictEqual([])
  })

  it.each(named)('%s: has exact types', (file) => {
    expect(of(file)).toStrictEqual([])
  })

  it('the principals of allOf are shown as what they are, not as how they were computed', () => {
    expect(of('shown.ts').map(({ message }) => message)).toStrictEqual([
      "Type 'Authenticator<{ user: { name: string; }; client: { id: number; }; }>' is not assignable to type 'never'.",
    ])
  })

  it.each(fixes.map((fix, at) => ({ fix, at })))(
    'a misplaced guard, or a condition on another principal, line $at: the error says the fix',
    ({ fix, at }) => {
      const errors = of('misplaced.ts')
      expect(errors).toHaveLength(fixes.length)
      expect(errors[at]?.message).toContain(fix)
    },
  )

  it.each(mistakes.map((one, at) => ({ ...one, at })))('$description: is an error', ({ at }) => {
    expect(of(`right${at}.ts`)).toStrictEqual([])
    const errors = of(`wrong${at}.ts`)
    expect(errors.length).toBeGreaterThan(0)
    // The error is at the mistake, and is not a slip of the test: a name or module that does not exist
    expect(errors.filter(({ line, code }) => line !== mistakenLine || [2304, 2307].includes(code))).toStrictEqual([])
  })
})

// Both ends of the peer range: routers before 15 have their declarations in @types/koa__router
const peers = {
  'koa 2 and @koa/router 12': {
    koa: 'koa-2',
    '@types/koa': 'types-koa-2',
    '@koa/router': 'koa-router-12',
    '@types/koa__router': 'types-koa-router-12',
  },
  'koa 3 and @koa/router 15': { koa: 'koa', '@types/koa': '@types/koa', '@koa/router': '@koa/router' },
} as const
const modules = {
  node10: { module: 'commonjs', moduleResolution: 'node10' },
  node16: { module: 'node16', moduleResolution: 'node16' },
  nodenext: { module: 'nodenext', moduleResolution: 'nodenext' },
  bundler: { module: 'esnext', moduleResolution: 'bundler', target: 'es2020' },
} as const
// TypeScript 7 checks everything that it knows. 5.9 is the last that knows node10, which old
// applications have; it has checked nodenext above. 6 has the types of 7.
const seven = { version: 'typescript-7', how: ['node16', 'nodenext', 'bundler'] } as const
const others = {
  'koa 2 and @koa/router 12': { version: 'typescript', how: ['node10'] },
  'koa 3 and @koa/router 15': { version: 'typescript-6', how: ['nodenext'] },
} as const

describe.each(Object.keys(peers) as (keyof typeof peers)[])('with %s', (pair) => {
  let folder = ''
  beforeAll(() => {
    folder = peersProject(project.folder, pair.replaceAll(/\W+/g, '-'), peers[pair], fixtures)
    // Every entry point, also those that no fixture names; both as ES modules import them and as CommonJS requires them
    const manifest = join(project.folder, 'node_modules/koa-with-auth/package.json')
    const { exports } = JSON.parse(readFileSync(manifest, 'utf8'))
    const entries = Object.keys(exports).filter((entry) => !entry.endsWith('.json'))
    const lines = entries.map((entry, at) => `export * as e${at} from 'koa-with-auth${entry.slice(1)}'\n`)
    for (const name of ['entries.ts', 'required.cts']) writeFileSync(join(folder, name), lines.join(''))
  })

  const runs = [others[pair], seven].flatMap(({ version, how }) => how.map((resolution) => ({ version, resolution })))
  it.each(runs)('$version and $resolution: the declarations have no mistake', async ({ version, resolution }) => {
    expect(await tsc(version, folder, modules[resolution])).toBe('')
  })
})
