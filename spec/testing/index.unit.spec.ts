/** The entry points `koa-with-auth/testing` and `/testing/laws`: what they export has a docstring and an example. */
import { readFileSync } from 'node:fs'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { importGraph } from '../support/papers/importGraph.js'
import { ownOptions, programOf, repository } from '../support/projects/typecheck.js'

const paths = ['index', 'laws/index'].map((name) => `${repository}src/testing/${name}.ts`)
const program = programOf(paths, ownOptions())
const checker = program.getTypeChecker()
const exported = paths
  .flatMap((path) => checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(path)!)!))
  .map((symbol) => (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol))
const functions = exported.filter(
  (symbol) => symbol.flags & ts.SymbolFlags.Value && checker.getTypeOfSymbol(symbol).getCallSignatures().length > 0,
)

describe('koa-with-auth/testing', () => {
  it('exports these names', () => {
    const names = exported.filter(({ flags }) => flags & ts.SymbolFlags.Value).map(({ name }) => name)
    expect([...new Set(names)].sort()).toStrictEqual([
      'LawViolations',
      'expectGuarded',
      'expectIsolated',
      'laws',
      'mergeRequests',
      'mockRequest',
      'signedRequest',
      'softwareAuthenticator',
      'testIssuer',
      'withBasic',
      'withBearer',
      'withCookie',
      'withHeader',
      'withPrincipal',
      'withQuery',
    ])
  })

  it.each(exported.filter(({ name }) => !name.endsWith('Options')))('$name has a docstring', (symbol) => {
    expect(ts.displayPartsToString(symbol.getDocumentationComment(checker))).not.toBe('')
  })

  it.each(functions)('$name has an example with its name', (symbol) => {
    const texts = symbol.getJsDocTags(checker).filter(({ name }) => name === 'example')
    expect(texts.some(({ text }) => ts.displayPartsToString(text).includes(symbol.name))).toBe(true)
  })

  it('imports fast-check only for the laws, because it is an optional peer, and nothing imports the laws', () => {
    const graph = importGraph()
    const users = graph.filter(({ to }) => to === 'fast-check').map(({ from }) => from)
    expect(users.length).toBeGreaterThan(2)
    expect(users.filter((from) => !from.startsWith('src/testing/laws/'))).toStrictEqual([])
    for (const folder of ['src/testing/', 'src/testing/laws/']) {
      const strangers = graph.filter(({ from, to }) => to.startsWith(folder) && !from.startsWith(folder))
      expect(strangers).toStrictEqual([])
    }
  })

  it('imports no test runner: vitest, jest, mocha and node:test see only Errors', () => {
    const runners = importGraph().filter(
      ({ from, to }) =>
        from.startsWith('src/testing/') && /^(vitest|jest|@jest|mocha|node:test|chai|assert|node:assert)/.test(to),
    )
    expect(runners).toStrictEqual([])
    for (const path of paths) expect(readFileSync(path, 'utf8')).toContain('Reading guide')
  })
})
