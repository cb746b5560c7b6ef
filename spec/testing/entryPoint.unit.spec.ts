/** The entry points `koa-with-auth/testing` and `/testing/laws`: what they export is documented, and examples name it (habit 4). */
import { readFileSync } from 'node:fs'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { importGraph } from '../support/importGraph.js'
import { ownOptions, programOf, repository } from '../support/typecheck.js'

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
  it('exports what the kit promises', () => {
    const names = exported.filter(({ flags }) => flags & ts.SymbolFlags.Value).map(({ name }) => name)
    expect([...new Set(names)].sort()).toStrictEqual([
      'LawViolations',
      'checkAuthenticator',
      'checkErrorMapper',
      'checkKeyStore',
      'expectGuarded',
      'lawsOf',
      'lawsOfErrorMapper',
      'lawsOfKeyStore',
      'mergeRequests',
      'mockRequest',
      'withBasic',
      'withBearer',
      'withCookie',
      'withHeader',
      'withPrincipal',
      'withQuery',
    ])
  })

  it.each(exported)('habit 4: $name has a sentence', (symbol) => {
    expect(ts.displayPartsToString(symbol.getDocumentationComment(checker))).not.toBe('')
  })

  it.each(functions)('habit 4: $name has an example that names it', (symbol) => {
    const texts = symbol.getJsDocTags(checker).filter(({ name }) => name === 'example')
    expect(texts.some(({ text }) => ts.displayPartsToString(text).includes(symbol.name))).toBe(true)
  })

  it('fast-check is an optional peer: the laws import it, and nothing imports them', () => {
    const graph = importGraph()
    const users = graph.filter(({ to }) => to === 'fast-check').map(({ from }) => from)
    expect(users.length).toBeGreaterThan(3)
    expect(users.filter((from) => !from.startsWith('src/testing/laws/'))).toStrictEqual([])
    for (const folder of ['src/testing/', 'src/testing/laws/']) {
      const strangers = graph.filter(({ from, to }) => to.startsWith(folder) && !from.startsWith(folder))
      expect(strangers).toStrictEqual([])
    }
  })

  it('no runner is imported: vitest, jest, mocha and node:test only see Errors', () => {
    const runners = importGraph().filter(
      ({ from, to }) =>
        from.startsWith('src/testing/') && /^(vitest|jest|@jest|mocha|node:test|chai|assert|node:assert)/.test(to),
    )
    expect(runners).toStrictEqual([])
    for (const path of paths) expect(readFileSync(path, 'utf8')).toContain('Reading guide')
  })
})
