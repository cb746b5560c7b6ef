/** Who may import whom, as src/README.md says: the imports of the sources are compared with its rules. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { sources } from '../support/papers/docExamples.js'
import { cycleOf, importGraph, type Import } from '../support/papers/importGraph.js'
import { repository } from '../support/projects/typecheck.js'

const graph = importGraph()
const folderOf = (path: string) => /^src\/(?:([\w-]+)\/)?/.exec(path)?.[1] ?? 'top'
const written = (imports: ReadonlyArray<Import>) => imports.map(({ from, to }) => `${from} -> ${to}`)
// The root, and what `exports` of package.json names beside it
const entryPoints = sources().filter((path) => /^src\/(?:(?:[\w-]+\/)*index|command\/main)\.ts$/.test(path))
const inside = ({ to }: Import) => to.startsWith('src/')

describe('imports of the sources', () => {
  it('are found, and lead to sources', () => {
    expect(sources()).toContain('src/core/Authenticator.ts')
    expect(graph.length).toBeGreaterThan(sources().length)
    expect(written(graph.filter((one) => inside(one) && !sources().includes(one.to)))).toStrictEqual([])
  })

  it('have no cycle, types included', () => {
    expect(cycleOf(graph)).toBeUndefined()
  })

  it('lead to no entry point', () => {
    expect(written(graph.filter(({ to }) => entryPoints.includes(to)))).toStrictEqual([])
  })

  it('lead from the entry points to every source', () => {
    const reached = new Set(entryPoints)
    for (const at of reached)
      for (const { from, to } of graph) if (from === at && inside({ from, to, typeOnly: true })) reached.add(to)
    expect([...reached].sort()).toStrictEqual(sources())
  })

  it('of core lead to no module of Node that does I/O', () => {
    const core = graph.filter((one) => folderOf(one.from) === 'core' && !inside(one) && !one.typeOnly)
    const allowed = ['io-ts', 'node:buffer', 'node:crypto', 'node:diagnostics_channel', 'node:http', 'node:util']
    expect(written(core.filter(({ to }) => !allowed.includes(to) && !to.startsWith('fp-ts/lib/')))).toStrictEqual([])
    const util = core.filter(({ to }) => to === 'node:util').map(({ from }) => readFileSync(repository + from, 'utf8'))
    for (const text of util) expect(text).toContain("import { types } from 'node:util'")
    // node:http is used for its table of status texts
    const http = core.filter(({ to }) => to === 'node:http').map(({ from }) => readFileSync(repository + from, 'utf8'))
    for (const text of http) expect(text).toContain("import { STATUS_CODES } from 'node:http'")
  })

  // a host that is not Koa has requests without Koa's further properties
  const ofAnyHost = ['core', 'crypto', 'kinds', 'guesses', 'stores', 'signals', 'keys', 'jwt', 'signatures', 'webhooks']

  it('lead to no type of Koa in rooms for any host, and these read no more of a request than the host must have', () => {
    const own = graph.filter(({ from }) => ofAnyHost.includes(folderOf(from)))
    expect(written(own.filter(({ to }) => /^koa(?:-session)?$/.test(to)))).toStrictEqual([])
    const folder = mkdtempSync(join(repository, 'node_modules/.cache-host-'))
    try {
      const files = sources().filter((path) => ofAnyHost.includes(folderOf(path)) && !path.endsWith('/index.ts'))
      const typeRoots = [`${repository}node_modules/@types`]
      const config = {
        extends: `${repository}tsconfig.json`,
        compilerOptions: { incremental: false, tsBuildInfoFile: null, typeRoots },
        files: files.map((path) => repository + path),
      }
      writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
      const checked = spawnSync(process.execPath, [`${repository}node_modules/typescript-7/bin/tsc`, '-p', folder])
      expect(String(checked.stdout)).toBe('')
      expect(checked.status).toBe(0)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('of koa and koa-session are types, because they are peers; only sessions and tests need the values', () => {
    const peers = graph.filter(({ to, typeOnly }) => /^koa(-session)?$/.test(to) && !typeOnly)
    expect(written(peers)).toStrictEqual(['src/sessions/sessions.ts -> koa-session', 'src/testing/requests.ts -> koa'])
  })

  it('of fp-ts name a module in `lib`, which Node can load, never the whole package', () => {
    const modules = graph.filter(({ to }) => /^(?:fp-ts|io-ts)(?:\/|$)/.test(to) && to !== 'io-ts')
    expect(modules).not.toStrictEqual([])
    expect(written(modules.filter(({ to }) => !/^fp-ts\/lib\/\w+\.js$/.test(to)))).toStrictEqual([])
  })
})
