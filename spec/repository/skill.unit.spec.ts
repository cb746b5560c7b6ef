/** `dist/SKILL.md` and `dist/llms.txt`, which `.ci/skill.mjs` makes of the guides for tools that write programs. */
import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { blocksOf, documents } from '../support/papers/docExamples.js'
import { repository } from '../support/projects/typecheck.js'

// Safe: the script exports these two
const { llms, skill } = (await import(/* @vite-ignore */ pathToFileURL(`${repository}.ci/skill.mjs`).href)) as Readonly<
  Record<'llms' | 'skill', () => string>
>
const guides = documents().flatMap((path) => /^examples\/guides\/(?!README)([\w-]+)\.md$/.exec(path)?.[1] ?? [])
const linked = (text: string) =>
  [...text.matchAll(/blob\/main\/examples\/guides\/([\w-]+)\.md/g)].map(([, guide = '']) => guide)
// Safe: it is the package.json of this repository
const manifest = JSON.parse(readFileSync(`${repository}package.json`, 'utf8')) as {
  readonly version: string
  readonly exports: Readonly<Record<string, unknown>>
  readonly scripts: Readonly<Record<string, string>>
}

it('both are made by each build', () => {
  expect(manifest.scripts['build']).toMatch(/ && node \.ci\/skill\.mjs$/)
})

describe('llms.txt', () => {
  it('has a title, a summary, and each guide once, with its question', () => {
    expect(llms()).toMatch(/^# koa-with-auth\n\n> .+\n\n/)
    expect(linked(llms()).sort()).toStrictEqual([...guides].sort())
    const entries = llms()
      .split('\n')
      .filter((line) => line.startsWith('- '))
    for (const entry of entries) expect(entry).toMatch(/^- \[.+\]\(https:\/\/\S+\): .+$/)
  })
})

describe('SKILL.md', () => {
  const text = skill()
  const [, front = '', body = ''] = /^---\n([\s\S]*?)\n---\n([\s\S]*)$/.exec(text) ?? []

  it('has a name and a description with the words that users say, in the lengths that tools read', () => {
    const [, name = '', description = ''] = /^name: ([a-z-]+)\ndescription: '([^'\n]+)'$/.exec(front) ?? []
    expect([name, description.length > 0, description.length <= 1024]).toStrictEqual(['koa-with-auth', true, true])
    for (const word of ['protect this endpoint', '401', 'current user', 'sign in with Google', 'webhook']) {
      expect(description).toContain(`"${word}"`)
    }
    expect(body).toContain(`version ${manifest.version}`)
    expect(text.split('\n').length).toBeLessThan(500)
  })

  it('has only programs of the guides, which are typechecked and run', () => {
    const programs = [...body.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code]) => code)
    const compiled = new Set(documents().flatMap((path) => blocksOf(path).map(({ code }) => code)))
    expect(programs.length).toBeGreaterThan(8)
    expect(programs.filter((code) => code === undefined || !compiled.has(code))).toStrictEqual([])
  })

  it('names guides and entry points that exist', () => {
    expect(linked(body).filter((guide) => !guides.includes(guide))).toStrictEqual([])
    const named = [...body.matchAll(/(?<![\w/.-])koa-with-auth(\/[\w-]+)*(?=[`'])/g)].map(([path]) => path)
    const entries = Object.keys(manifest.exports).map((path) => `koa-with-auth${path.slice(1)}`)
    expect(named.length).toBeGreaterThan(10)
    expect(named.filter((path) => !entries.includes(path))).toStrictEqual([])
  })

  it('says of the rest which entry point has it, as it is', () => {
    const rest = body.slice(body.indexOf('## Where the rest is'), body.indexOf('Behind a proxy'))
    const places = [...rest.matchAll(/`koa-with-auth((?:\/[\w-]+)*)`: ([^]*?)(?=`koa-with-auth|$)/g)]
    expect(places.length).toBeGreaterThan(6)
    for (const [, path = '', names = ''] of places) {
      const source = readFileSync(`${repository}src${path}/index.ts`, 'utf8')
      for (const [, name = ''] of names.matchAll(/`(\w+)`/g)) {
        if (name !== 'errorMapper') expect(source, path).toMatch(new RegExp(`\\b${name}\\b`))
      }
    }
  })

  it('names functions in its rules that a program of the guides imports', () => {
    const rules = body.slice(body.indexOf('## Rules'), body.indexOf('\n## ', body.indexOf('## Rules') + 1))
    const names = [...rules.matchAll(/`([a-z]\w+)(?:\(.*?\))*`/g)].map(([, name = '']) => name)
    const imported = documents()
      .flatMap((path) => blocksOf(path).flatMap(({ code }) => [...code.matchAll(/^import \{([^}]+)\} from '(\S+)'/gm)]))
      .filter(([, , from = '']) => from.startsWith('koa-with-auth'))
      .flatMap(([, list = '']) => list.split(',').map((one) => one.trim()))
    const others = ['authenticate', 'trustedOrigins']
    expect(names.length).toBeGreaterThan(8)
    expect(names.filter((name) => !imported.includes(name) && !others.includes(name))).toStrictEqual([])
  })
})
