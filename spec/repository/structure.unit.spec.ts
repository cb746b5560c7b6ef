/**
 * The structure of the sources, in figures that may only become smaller. A file is a noun that a maintainer would look
 * for; a name is exported when a second file needs it for a second reason.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { linesOfCode } from '../support/papers/importGraph.js'
import { repository } from '../support/projects/typecheck.js'

const root = `${repository}src`
const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => resolve(root, file))

const isEntry = (file: string) => /\/(?:index|main)\.ts$/.test(file)

const sources = files.map((file) => {
  const text = readFileSync(file, 'utf8')
  return { file, text, parsed: ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true) }
})

const imports = new Map<string, Set<string>>()
/** Who imports a name, by `file#name`; `*` for a whole module. */
const users = new Map<string, Set<string>>()
const exported: Array<readonly [file: string, name: string]> = []

const add = (map: Map<string, Set<string>>, key: string, value: string): void => {
  map.set(key, (map.get(key) ?? new Set()).add(value))
}

for (const { file, parsed } of sources) {
  for (const statement of parsed.statements) {
    if (ts.isImportDeclaration(statement) || ts.isExportDeclaration(statement)) {
      const from = statement.moduleSpecifier
      if (from === undefined || !ts.isStringLiteral(from) || !from.text.startsWith('.')) continue
      const to = resolve(dirname(file), from.text).replace(/\.js$/, '.ts')
      add(imports, file, to)
      const names = ts.isImportDeclaration(statement) ? statement.importClause?.namedBindings : statement.exportClause
      if (names !== undefined && (ts.isNamedImports(names) || ts.isNamedExports(names))) {
        for (const { propertyName, name } of names.elements) add(users, `${to}#${(propertyName ?? name).text}`, file)
      } else add(users, `${to}#*`, file)
      continue
    }
    const isExported =
      ts.canHaveModifiers(statement) &&
      ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) === true
    if (!isExported) continue
    if (ts.isVariableStatement(statement)) {
      for (const { name } of statement.declarationList.declarations) {
        const bound = ts.isObjectBindingPattern(name) ? name.elements.map((one) => one.name) : [name]
        for (const one of bound) exported.push([file, one.getText()])
      }
    } else if ('name' in statement) exported.push([file, (statement.name as ts.Identifier).text])
  }
}

const depths = new Map<string, number>()
const depthOf = (file: string): number => {
  const known = depths.get(file)
  if (known !== undefined) return known
  depths.set(file, 0)
  const depth = 1 + Math.max(0, ...[...(imports.get(file) ?? [])].map(depthOf))
  depths.set(file, depth)
  return depth
}

const usersOf = (file: string, name: string) => [
  ...(users.get(`${file}#${name}`) ?? []),
  ...(users.get(`${file}#*`) ?? []),
]

// What a spec alone imports, and why it is not tested through the face of its module
const forSpecs = {
  'audit/paths.ts: behind': 'a step of the automaton, compared with the RegExp of the router for any path',
  'signatures/directory.ts: isPublicAddress': 'a table of networks, none of which may be asked in a test',
  'signatures/webBotAuth.ts: webBotAuthOver':
    'the same with other fetched directories, because those of agents are on the Internet',
  'stores/sqlite.ts: openSqlite': 'a connection beside that of a store, as of another process',
}

describe('the structure of the sources', () => {
  it('has no chain of imports of more than 17 files', () => {
    expect(Math.max(...files.map(depthOf))).toBeLessThanOrEqual(17)
  })

  it('exports at most 45 of 100 internal names for one other file alone', () => {
    const internal = exported
      .filter(([file]) => !isEntry(file))
      .map(([file, name]) => usersOf(file, name))
      // a name that no source imports is exported for a spec alone
      .filter((found) => found.length > 0 && !found.some(isEntry))
    const once = internal.filter((found) => new Set(found).size === 1)
    expect(internal.length).toBeGreaterThan(500)
    expect(once.length / internal.length).toBeLessThanOrEqual(0.45)
  })

  it('exports nothing for specs alone, except what no face shows', () => {
    const alone = exported.filter(([file, name]) => !isEntry(file) && usersOf(file, name).length === 0)
    const named = alone.map(([file, name]) => `${file.slice(root.length + 1)}: ${name}`)
    expect(named.toSorted()).toStrictEqual(Object.keys(forSpecs).toSorted())
  })

  it('compares what a stranger guesses in constant time: where secrets are compared, and nowhere by equals', () => {
    const comparing = sources.flatMap(({ file, text }) =>
      /\btimingSafeEqual\(/.test(text) ? [file.slice(root.length + 1)] : [],
    )
    expect(comparing.toSorted()).toEqual(['crypto/secrets.ts', 'jwt/signature.ts', 'passwords/passwords.ts'])
    const [signature = ''] = sources.flatMap(({ file, text }) => (file.endsWith('jwt/signature.ts') ? [text] : []))
    expect(signature).toMatch(/const secretVerify[^]{0,300}timingSafeEqual\(createHmac\(/)
    expect(signature).not.toMatch(/\.equals\(/)
  })

  it('has no more marks: symbols with a name', () => {
    const marks = new Set(
      sources.flatMap(({ text }) =>
        // those of the language and of Node have names that are not ours
        [...text.matchAll(/\bSymbol(?:\.for)?\(\s*['"`]([^'"`]+)/g)].flatMap(([, name = '']) =>
          name.startsWith('nodejs.') ? [] : [name],
        ),
      ),
    )
    expect(marks.size).toBeGreaterThan(10)
    expect(marks.size).toBeLessThanOrEqual(26)
  })

  it('has at most a dozen files that are no entry point and have less than 15 lines of code', () => {
    const small = files.filter((file) => !isEntry(file) && linesOfCode(relative(repository, file)) < 15)
    expect(small.length).toBeGreaterThan(0)
    expect(small.length).toBeLessThanOrEqual(9)
  })

  it('has at most 20 functions of more than 40 lines: steps are functions of the file', () => {
    const isLong = (node: ts.Node, { parsed }: (typeof sources)[number]): boolean =>
      ts.isFunctionLike(node) && node.getText(parsed).split('\n').length > 40
    const longIn = (node: ts.Node, source: (typeof sources)[number]): number => {
      let long = isLong(node, source) ? 1 : 0
      ts.forEachChild(node, (child) => void (long += longIn(child, source)))
      return long
    }
    expect(sources.reduce((sum, source) => sum + longIn(source.parsed, source), 0)).toBeLessThanOrEqual(20)
  })

  it('has one bounded memory and one single flight, in core/memory.ts', () => {
    const others = sources.filter(({ file }) => !file.endsWith('/core/memory.ts'))
    const dropsOldest = /for \(const oldest of|\.keys\(\)\.next\(\)|const \[oldest\]/
    const joins = /\?\?= \w+\(\)\.finally\(/
    const byHand = others.filter(({ text }) => dropsOldest.test(text) || joins.test(text)).map(({ file }) => file)
    expect(byHand).toStrictEqual([])
  })

  it('has no two files whose names differ in case only', () => {
    const lower = files.map((file) => file.toLowerCase())
    expect(new Set(lower).size).toBe(files.length)
  })

  it('has a file, or an entry point, for each unit spec of a room, which the spec is named after', () => {
    const specs = readdirSync(`${repository}spec`, { recursive: true, encoding: 'utf8' })
    const strangers = specs.filter((spec) => {
      const [, room, name = ''] = /^(.+)\/(\w+)(?:-[\w-]+)?\.unit(?:\.slow)?\.spec\.ts$/.exec(spec) ?? []
      const inRoom = files.filter((file) => room !== undefined && file.startsWith(`${root}/${room}/`))
      return inRoom.length > 0 && !inRoom.some((file) => file.endsWith(`/${name}.ts`))
    })
    expect(specs.filter((spec) => spec.endsWith('.unit.spec.ts')).length).toBeGreaterThan(50)
    expect(strangers).toStrictEqual([])
  })
})
