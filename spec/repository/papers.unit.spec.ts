/**
 * What a program can check in the Markdown files: links lead somewhere, the README is short, and the response that it
 * shows is real.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import type Koa from 'koa'
import { describe, expect, it } from 'vitest'
import { unfinishedReasons } from '../../src/core/UnfinishedReason.js'
import { documents, sources } from '../support/papers/docExamples.js'
import { programIn } from '../support/papers/guidePrograms.js'
import { importGraph } from '../support/papers/importGraph.js'
import { brokenLink, linksOf, papers } from '../support/papers/papers.js'
import { listen } from '../support/servers/server.js'
import { repository } from '../support/projects/typecheck.js'

const read = (path: string) => readFileSync(repository + path, 'utf8')

describe('Markdown files', () => {
  it('are found', () => {
    expect(papers()).toEqual(
      expect.arrayContaining(['README.md', 'CHANGELOG.md', 'spec/README.md', 'examples/README.md']),
    )
    expect(papers().flatMap(linksOf).length).toBeGreaterThan(100)
  })

  it.each(papers())('%s: every link leads to a file or a heading', (paper) => {
    expect(linksOf(paper).flatMap((link) => brokenLink(link) ?? [])).toStrictEqual([])
  })

  it('every guide is listed among the guides, once', () => {
    const listed = linksOf('examples/guides/README.md').map(({ target }) => `examples/guides/${target}`)
    const guides = documents().filter((path) => path.startsWith('examples/guides/') && !path.endsWith('README.md'))
    expect(listed.sort()).toStrictEqual(guides)
  })

  it('and the scripts name only folders and files of src and spec that exist', () => {
    const scripts = ['.ci/mutate.mjs', '.ci/mutants/plugin.mjs', '.ci/stryker.json', '.ci/vitest.mutate.config.ts']
    const named = [...papers(), ...scripts]
      .filter((path) => !path.endsWith('mutants.md'))
      .flatMap((path) => {
        const text = read(path)
        const paths = [...text.matchAll(/(?<![\w/.-])(?:src|spec)\/[\w./-]*\w/g)].map(([found]) => found)
        const parts = [...text.matchAll(/npm run mutate -- ([\w/ ]+)/g)].flatMap(([, given = '']) =>
          given.trim().split(' '),
        )
        return [...paths, ...parts.map((part) => `src/${part}`)]
      })
    const isThere = (path: string) =>
      ['', '.ts', '.unit.spec.ts', '.law.spec.ts', '.http.spec.ts', '.law.slow.spec.ts', '.http.slow.spec.ts'].some(
        (end) => existsSync(repository + path + end),
      )
    expect(named.length).toBeGreaterThan(20)
    expect([...new Set(named)].filter((path) => !isThere(path))).toStrictEqual([])
  })

  it('have no name that the guide of old names replaces', () => {
    const guide = 'examples/guides/from-2217098.md'
    const old = ['## Functions', '## Names of the field'].flatMap((heading) => {
      const [, section = ''] = read(guide).split(heading)
      return [...section.split(/^## /m)[0]!.matchAll(/^\| ([^|]+)\|/gm)].flatMap(([, before = '']) =>
        [...before.matchAll(/`(\w+)[(`]/g)].flatMap(([, name = '']) =>
          // a method of `sessions` has this name
          name === 'endSession' ? [] : [name],
        ),
      )
    })
    expect(old).toEqual(expect.arrayContaining(['codes', 'backChannel', 'onDecision']))
    const named = new RegExp(`\`(?:${old.join('|')})[(\`]`, 'g')
    // mutants.md says which names the code had that was measured
    const others = papers().filter((path) => path !== guide && !path.endsWith('mutants.md'))
    const found = others.flatMap((path) => [...read(path).matchAll(named)].map(([name]) => `${path}: ${name}`))
    expect(found).toStrictEqual([])
  })

  it('contain no path of a machine', () => {
    for (const paper of papers())
      expect(read(paper), paper).not.toMatch(/(?:^|[\s`'"(])(?:\/home\/|\/Users\/|\/work\/|\/tmp\/)/m)
  })
})

describe('README.md', () => {
  const text = read('README.md')

  it('has at most 150 lines and 14 KB, and needs no pipe', () => {
    expect(text.split('\n').length - 1).toBeLessThanOrEqual(150)
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(14 * 1024)
    expect(text).not.toContain('pipe(')
  })

  it('lists every guide, the one that finds it by word first', () => {
    const listed = linksOf('README.md').flatMap(
      ({ target }) => /^examples\/guides\/([\w-]+\.md)$/.exec(target)?.[1] ?? [],
    )
    const guides = linksOf('examples/guides/README.md').map(({ target }) => target)
    expect(guides[0]).toBe('words.md')
    expect(guides.filter((guide) => !listed.includes(guide))).toStrictEqual([])
    expect(text.indexOf('guides/words.md')).toBe(text.indexOf('guides/', text.indexOf('## Guides')))
  })

  it('has on its first screen what is true: requests that npm start prints, and the number of hostile requests', () => {
    const printed = read('examples/server.ts').match(/^ {2}curl .*# \d{3}$/gm)?.length
    expect(text).toContain(`${printed} requests with their answers`)
    const { cases } = JSON.parse(read('spec/data/bad-inputs.json')) as { readonly cases: ReadonlyArray<unknown> }
    expect(text).toContain(`**Evidence**: ${cases.length} hostile requests`)
    const [, command = ''] = /`(npx vitest run\s[^`]+)`/.exec(text) ?? []
    expect(read('examples/guides/tested-with.md')).toContain(`\`${command.replace(/\s+/g, ' ')}\``)
    expect(text.indexOf('npm ci && npm start')).toBeLessThan(text.indexOf('npm create'))
  })

  it('shows the response that its example gives', async () => {
    const { app } = await programIn<{ readonly app: Koa }>('README.md', 0)
    const answer = await fetch(`${(await listen(app)).url}/me`)
    const body = await answer.text()
    const ofTransport = ['connection', 'content-length', 'date', 'keep-alive']
    const fields = [...answer.headers].filter(([name]) => !ofTransport.includes(name))

    const [head = '', shownBody] = (/^```http\n([\s\S]*?)^```$/m.exec(text)?.[1] ?? '').split('\n\n')
    const [status, ...lines] = head.split('\n')
    const shown = lines.map((line) => [line.split(': ')[0]?.toLowerCase(), line.slice(line.indexOf(': ') + 2)])
    expect(status).toBe(`HTTP/1.1 ${answer.status} ${answer.statusText}`)
    expect(shown.sort()).toStrictEqual(fields.sort())
    expect(shownBody?.trim()).toBe(body)
  })
})

describe('examples/guides/sign-in.md', () => {
  it('has each reason of a failure, with its status', () => {
    const [, said = ''] = /A failure has a `reason`:([^.]*)\./.exec(read('examples/guides/sign-in.md')) ?? []
    const reasons = said.split(';').flatMap((part) => {
      const status = Number(/\d{3}/.exec(part)?.[0])
      return [...part.matchAll(/`(\w+)`/g)].map(([, name = '']) => [name, status] as const)
    })
    const real = Object.entries(unfinishedReasons).map(([name, { status }]) => [name, status] as const)
    expect(Object.fromEntries(reasons)).toStrictEqual(Object.fromEntries(real))
  })
})

describe('spec/README.md', () => {
  it('names the rooms of src that have a folder of specs', () => {
    const [, said = ''] = /^\| (.+) \| the room of `src`/m.exec(read('spec/README.md')) ?? []
    const isRoom = (name: string) => existsSync(`${repository}src/${name}`) && !name.includes('.')
    expect([...said.matchAll(/`([\w-]+)`/g)].map(([, name]) => name)).toStrictEqual(
      readdirSync(`${repository}spec`).filter(isRoom).sort(),
    )
  })
})

describe('src/README.md', () => {
  const text = read('src/README.md')

  it('a name that links to a file is in that file', () => {
    const names = [...text.matchAll(/\[`(\w+)`\]\(([^)]+)\)/g)].map(([, name = '', file = '']) => ({ name, file }))
    expect(names.length).toBeGreaterThan(15)
    for (const { name, file } of names) {
      expect(read(`src/${file}`), `${name} in ${file}`).toMatch(
        new RegExp(`(?:const|function|class|interface) ${name}\\b`),
      )
    }
  })

  it('needs few files for each of the seven traces', () => {
    const traces = text.split(/^### Trace \d+: .*$/m).slice(1)
    const filesOf = (trace: string) => {
      const [listed = ''] = trace.split('\n1. ')
      return new Set([...listed.matchAll(/\]\(([\w/-]+\.ts)\)/g)].map(([, file]) => file))
    }
    const limits = [6, 6, 6, 8, 9, 6, 6]
    const tooMany = traces.flatMap((trace, at) => (filesOf(trace).size > limits[at]! ? [trace.trim()] : []))
    expect(traces).toHaveLength(limits.length)
    for (const trace of traces) expect(filesOf(trace).size).toBeGreaterThan(3)
    expect(tooMany).toStrictEqual([])
  })

  it('says who imports whom, like the sources', () => {
    const folderOf = (path: string) => /^src\/(?:([\w-]+)\/)?/.exec(path)?.[1] ?? 'top'
    const found = new Map(sources().map((path) => [folderOf(path), new Set<string>()]))
    for (const { from, to } of importGraph()) {
      if (!to.startsWith('src/') || ['crypto', folderOf(from)].includes(folderOf(to))) continue
      found.get(folderOf(from))?.add(folderOf(to))
    }
    const section = text.slice(text.indexOf('## Who may import whom'), text.indexOf('## Private facts'))
    const said = [...section.matchAll(/^\| (`[\w-]+`|top) +\| ([^|]*)\|/gm)].map(([, folder = '', imports = '']) => [
      folder.replaceAll('`', ''),
      [...imports.matchAll(/`([\w-]+)`/g)].map(([, name]) => name).sort(),
    ])
    const listed = said.map(([folder]) => folder)
    const isListed = ([folder, imports]: [string, Set<string>]) =>
      listed.includes(folder) || [...imports].some((one) => one !== 'core')
    const real = [...found].filter(isListed).map(([folder, imports]) => [folder, [...imports].sort()])
    expect(said.sort()).toStrictEqual(real.sort())
  })

  it('lists every file of core once', () => {
    const section = text.slice(text.indexOf('## The files of `core`'), text.indexOf('## Private facts'))
    const rows = section
      .split('\n')
      .filter((line) => line.startsWith('| ') && !/^\| (?:Subject|-+|folders) /.test(line))
    const listed = rows.flatMap(
      (row) =>
        row
          .split('|')[2]
          ?.split(',')
          .map((name) => name.trim()) ?? [],
    )
    const files = sources().flatMap((path) => /^src\/core\/(\w+)\.ts$/.exec(path)?.[1] ?? [])
    expect(listed.sort()).toStrictEqual(files.sort())
  })
})
