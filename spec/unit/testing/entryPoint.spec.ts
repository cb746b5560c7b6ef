/** The entry point `koa-with-auth/testing`: what it exports is documented, and its examples name it (STYLE, habit 4). */
import { readFileSync } from 'node:fs'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { importGraph } from '../../support/importGraph.js'
import { ownOptions, repository } from '../../support/typecheck.js'

const path = `${repository}src/testing/index.ts`
const program = ts.createProgram([path], ownOptions())
const checker = program.getTypeChecker()
const exported = checker
  .getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(path)!)!)
  .map((symbol) => (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol))
const functions = exported.filter(
  (symbol) => symbol.flags & ts.SymbolFlags.Value && checker.getTypeOfSymbol(symbol).getCallSignatures().length > 0,
)

describe('koa-with-auth/testing', () => {
  it('exports what the kit promises', () => {
    const promised = ['requests', 'authenticators', 'routers', 'lawsOf', 'checkAuthenticator', 'checkErrorMapper', 'expectGuarded', 'withPrincipal'] // prettier-ignore
    expect(functions.map(({ name }) => name)).toEqual(expect.arrayContaining(promised))
  })

  it.each(exported)('habit 4: $name has a sentence', (symbol) => {
    expect(ts.displayPartsToString(symbol.getDocumentationComment(checker))).not.toBe('')
  })

  it.each(functions)('habit 4: $name has an example that names it', (symbol) => {
    const texts = symbol.getJsDocTags(checker).filter(({ name }) => name === 'example')
    expect(texts.some(({ text }) => ts.displayPartsToString(text).includes(symbol.name))).toBe(true)
  })

  it('fast-check is an optional peer: nothing imports it but this folder, and that folder by no one else', () => {
    const graph = importGraph()
    const users = graph.filter(({ to }) => to === 'fast-check').map(({ from }) => from)
    expect(users.length).toBeGreaterThan(3)
    expect(users.filter((from) => !from.startsWith('src/testing/'))).toStrictEqual([])
    const strangers = graph.filter(({ from, to }) => to.startsWith('src/testing/') && !from.startsWith('src/testing/'))
    expect(strangers).toStrictEqual([])
  })

  it('no runner is imported: vitest, jest, mocha and node:test only see Errors', () => {
    const runners = importGraph().filter(
      ({ from, to }) =>
        from.startsWith('src/testing/') && /^(vitest|jest|@jest|mocha|node:test|chai|assert|node:assert)/.test(to),
    )
    expect(runners).toStrictEqual([])
    expect(readFileSync(path, 'utf8')).toContain('Reading guide')
  })
})
