/** An application in one file: a real bundler takes what the package needs, finds what is optional, and leaves out what nothing uses. */
import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build, type BuildOptions } from 'esbuild'
import { rolldown } from 'rolldown'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packedProject, type PackedProject } from '../support/projects/packed.js'
import { repository } from '../support/projects/typecheck.js'

// Safe: it is the package.json of this repository
const manifest = JSON.parse(readFileSync(`${repository}package.json`, 'utf8')) as {
  readonly peerDependencies: Readonly<Record<string, string>>
  readonly peerDependenciesMeta: Readonly<Record<string, object>>
  readonly exports: Readonly<Record<string, unknown>>
}
const peers = Object.keys(manifest.peerDependencies)
const required = peers.filter((name) => !(name in manifest.peerDependenciesMeta))
const entries = Object.keys(manifest.exports).filter((path) => !path.endsWith('.json'))
const all = entries.map((path, at) => `import * as m${at} from 'koa-with-auth${path.slice(1)}'`).join('\n')
const used = `console.log(JSON.stringify([${entries.map((_path, at) => `Object.keys(m${at}).length > 0`).join(', ')}]))`

// Without node_modules above it: what a bundle does not have, it cannot have
const runAlone = (project: PackedProject, file: string, code: string): unknown => {
  const path = join(project.folder, '..', file)
  writeFileSync(path, code)
  try {
    return JSON.parse(execFileSync(process.execPath, [path], { encoding: 'utf8' }))
  } finally {
    rmSync(path)
  }
}

describe('an application in one file', () => {
  let plain: PackedProject
  let whole: PackedProject
  beforeAll(() => {
    plain = packedProject(required)
    whole = packedProject(peers.filter((name) => !name.startsWith('@types/')))
  })
  afterAll(() => {
    plain?.remove()
    whole?.remove()
  })
  const bundled = async (project: PackedProject, contents: string, more: BuildOptions = {}): Promise<string> => {
    const options = { bundle: true, write: false, platform: 'node', minify: true, logLevel: 'silent', ...more } as const
    const { outputFiles } = await build({ ...options, stdin: { contents, resolveDir: project.folder } })
    return Buffer.from(outputFiles?.[0]?.contents ?? []).toString()
  }

  it.each(['esm', 'cjs'] as const)('esbuild finds what is not installed as optional (%s)', async (format) => {
    expect((await bundled(plain, `${all}\n${used}`, { format })).length).toBeGreaterThan(100_000)
  })

  it('rolldown finds what is not installed as optional', async () => {
    const input = join(plain.folder, 'all.js')
    writeFileSync(input, `${all}\n${used}`)
    const made = await rolldown({ input, platform: 'node', onwarn: () => {} })
    const { output } = await made.generate({ format: 'esm' })
    expect(output[0].code.length).toBeGreaterThan(100_000)
  })

  it('webpack and Turbopack, which find no package with native code, are told to leave it outside', () => {
    const files = plain.files.filter((file) => /\.js$/.test(file))
    const texts = files.map((file) => readFileSync(join(plain.folder, 'node_modules/koa-with-auth', file), 'utf8'))
    const later = texts.flatMap((text) => text.match(/import\([^)]*@node-rs\/[\w-]+/g) ?? [])
    const outside = ['argon2', 'bcrypt'].map((name) => `import(/*webpackIgnore:true*/\`@node-rs/${name}`)
    expect(new Set(later)).toStrictEqual(new Set(outside))
  })

  // CommonJS in an ES module requires modules of Node
  const banner = { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" }

  const native = ['@node-rs/*']

  it('as CommonJS it has what is installed, and runs alone', async () => {
    const code = await bundled(whole, `${all}\n${used}`, { format: 'cjs', external: native })
    expect(runAlone(whole, 'alone.cjs', code)).toStrictEqual(entries.map(() => true))
  })

  it('as an ES module it runs alone, with the line that esbuild demands for CommonJS inside', async () => {
    const code = await bundled(whole, `${all}\n${used}`, { format: 'esm', external: native, banner })
    expect(runAlone(whole, 'alone.mjs', code)).toStrictEqual(entries.map(() => true))
  })

  it.each(['esm', 'cjs'] as const)('finds the engine of SQLite, which is in no bundle (%s)', async (format) => {
    const program = `import { sqliteStore } from 'koa-with-auth/stores'
      const store = sqliteStore({ url: 'file::memory:', engine: '@libsql/client' })
      store.insert('a', 'text', 1000).then(console.log, console.log)`
    const path = join(whole.folder, `sqlite.${format === 'cjs' ? 'cjs' : 'mjs'}`)
    writeFileSync(path, await bundled(whole, program, { format }))
    const printed = execFileSync(process.execPath, [path], { encoding: 'utf8', cwd: whole.folder })
    rmSync(path)
    expect(printed).toBe('true\n')
  })

  it('says at its start what is missing, if it was bundled without it', async () => {
    const program = "import { sessions } from 'koa-with-auth/sessions'\nconsole.log(sessions)"
    const code = await bundled(plain, program, { format: 'esm', banner })
    const message = 'koa-with-auth/sessions needs koa-session: npm install koa-session'
    expect(() => runAlone(plain, 'missing.mjs', code)).toThrow(message)
  })

  it.each([
    { names: 'constantTimeEqual', limit: 3000 },
    { names: 'withAuth, httpBearer', limit: 110_000 },
  ])('{ $names } alone takes at most $limit bytes without peers', async ({ names, limit }) => {
    const contents = `import { ${names} } from 'koa-with-auth'\nconsole.log(${names})`
    const code = await bundled(plain, contents, { format: 'esm', external: peers })
    expect(code.length).toBeLessThanOrEqual(limit)
  })
})
