/** What the guides "Advisories" and "What it was tested with" say of specs is in these specs. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { rules } from '../data/mcp.mjs'
import { countsUpTo } from '../support/models/levelModel.js'
import { repository } from '../support/projects/typecheck.js'

const read = (path: string) => readFileSync(repository + path, 'utf8')
const lawFiles = readdirSync(`${repository}spec`, { recursive: true, encoding: 'utf8' }).filter((file) =>
  file.endsWith('.law.spec.ts'),
)
const shownBy = /\[`([^`]+)`\]\(\.\.\/\.\.\/(spec\/[\w./-]+)\)/g
const shown = (text: string) => [...text.matchAll(shownBy)].map(([, title = '', path = '']) => ({ title, path }))

describe('the guide "Advisories"', () => {
  const entries = read('examples/guides/advisories.md')
    .split(/^- /m)
    .slice(1)
    .map((entry) => ({ name: /^\[([\w-]+)\]/.exec(entry)?.[1] ?? entry, entry }))

  it('has twenty advisories or more, each once, of 2025 or 2026', () => {
    const names = entries.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
    expect(names.length).toBeGreaterThanOrEqual(20)
    expect(names.filter((name) => !/^(?:CVE-202[56]-\d{4,6}|GHSA(?:-\w{4}){3})$/.test(name))).toStrictEqual([])
  })

  it.each(entries)('$name: says what happened there and here, and the words of its specs are in these files', (of) => {
    expect(of.entry.replaceAll('\n', ' ')).toMatch(/ There: .+\. Here: .+\. Spec: .+\./)
    const specs = shown(of.entry)
    expect(specs.length).toBeGreaterThan(0)
    // advisories.http.slow.spec.ts runs them
    expect(specs.filter(({ title, path }) => !read(path).includes(title))).toStrictEqual([])
  })
})

describe('the guide "What it was tested with"', () => {
  const guide = read('examples/guides/tested-with.md')

  it('has the bound and the counts of the model of levels', () => {
    const { programs, applications, requests } = countsUpTo(3)
    const counted = [programs, applications, requests].map((count) => count.toLocaleString('en'))
    expect(guide).toContain(`${counted[0]} programs`)
    expect(guide).toContain(`${counted[1]} applications`)
    expect(guide).toContain(`${counted[2]} requests`)
  })

  const { cases } = JSON.parse(read('spec/data/bad-inputs.json')) as {
    readonly cases: ReadonlyArray<{ app?: unknown }>
  }
  it.each([
    ['[Hostile requests](hostile-requests.md), as bytes', cases.length],
    ['The same as upgrades', cases.length],
    ['What a protected MCP server must do', rules.length],
    ['The same, against the adapters of the MCP SDK', rules.length],
    ['The model of levels, up to two routers', `${countsUpTo(2).applications.toLocaleString('en')} applications`],
    ['All laws, with random cases', `${lawFiles.length} files`],
  ])('says how many cases there are: %s', (what, count) => {
    const [, cell = ''] =
      new RegExp(`^\\| ${what.replace(/[[\]().]/g, '\\$&')} +\\| ([^|]+) \\|`, 'm').exec(guide) ?? []
    expect(cell.trim()).toBe(String(count))
  })
})

it('the program of the guide "better-auth on Koa" is the one that is run', () => {
  const [, shownProgram] =
    /^```js program=better-auth\n([\s\S]*?)^```$/m.exec(read('examples/guides/better-auth.md')) ?? []
  const run = read('spec/peers/src/betterAuthOnKoa.mjs').replace('../../../dist/index.js', 'koa-with-auth')
  expect(shownProgram).toBe(run)
})
