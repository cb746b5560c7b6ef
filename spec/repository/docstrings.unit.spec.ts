/** Every example in docstrings, README and guides typechecks and runs, and every public export has a docstring. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import ts from 'typescript'
import { blocksOf, documents, examplesOf, sources, type DocExample } from '../support/papers/docExamples.js'
import { ownOptions, programOf, repository, typecheckAlone, type Mistake } from '../support/projects/typecheck.js'

// One folder for each process, so that parallel runs use different ones
const folder = `${repository}spec/.generated/docs-${process.pid}`

const pathOf = ({ place }: DocExample) => `${folder}/${place.replaceAll(/[^A-Za-z0-9]+/g, '-')}.ts`

// Readers copy the blocks of guides unchanged, so only the examples of docstrings get an import of `assert`
const needsAssert = ({ place, code }: DocExample) =>
  place.startsWith('src/') && !/from '(?:node:)?assert(?:\/strict)?'/.test(code)

// On the first line of the example, so that line numbers agree
const moduleOf = (example: DocExample) =>
  `${needsAssert(example) ? "import assert from 'node:assert'; " : ''}${example.code}\nexport {}\n`

const examples = [...sources().flatMap(examplesOf), ...documents().flatMap(blocksOf)]

describe('examples', () => {
  let mistakes: Mistake[] = []

  beforeAll(() => {
    mkdirSync(folder, { recursive: true })
    for (const example of examples) writeFileSync(pathOf(example), moduleOf(example))
    // An example ends with the value that it makes
    const options = { ...ownOptions(), noUnusedLocals: false, noUnusedParameters: false }
    mistakes = typecheckAlone(examples.map(pathOf), options)
  })

  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it('are found', () => {
    expect(examples.length).toBeGreaterThan(20)
    expect(new Set(examples.map(pathOf)).size).toBe(examples.length)
  })

  it.each(examples)('$place typechecks', (example) => {
    const own = mistakes.filter(({ file }) => pathOf(example).endsWith(file))
    expect(own.map(({ line, message }) => `line ${line}: ${message}`)).toStrictEqual([])
  })

  it('have no other mistake', () => {
    expect(mistakes.filter(({ file }) => !file.startsWith('spec/.generated/docs-'))).toStrictEqual([])
  })

  it.each(examples.filter(({ runs }) => runs))('$place runs', async (example) => {
    await import(/* @vite-ignore */ pathToFileURL(pathOf(example)).href)
  })
})

// Predicates, readers of a request field, and the default mapper. All others need an example
const needsNone = [
  'defaultErrorMapper',
  'fromAuthorization',
  'fromCookie',
  'fromHeader',
  'fromQuery',
  'isAuthenticator',
  'sessionLoginAuth',
  'sessionLoginAuthSuperuser',
]

describe('public exports', () => {
  const faces = ['index', 'fp/index', 'openapi/index'].map((name) => `${repository}src/${name}.ts`)
  const program = programOf(faces, ownOptions())
  const checker = program.getTypeChecker()
  const resolved = (symbol: ts.Symbol) =>
    symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
  const isFunction = (symbol: ts.Symbol) =>
    (symbol.flags & ts.SymbolFlags.Value) !== 0 && checker.getTypeOfSymbol(symbol).getCallSignatures().length > 0
  const exported = faces
    .flatMap((face) => checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(face)!)!))
    .map((symbol) => ({ name: symbol.name, symbol: resolved(symbol) }))
  const functions = exported.filter(({ symbol }) => isFunction(symbol))

  // of options, the members say what they are
  it.each(exported.filter(({ name }) => !name.endsWith('Options')))('$name has a docstring', ({ symbol }) => {
    const doc = ts.displayPartsToString(symbol.getDocumentationComment(checker))
    const see = symbol.getJsDocTags(checker).some(({ name }) => name === 'see')
    expect(doc !== '' || see).toBe(true)
  })

  it('what needs no example exists', () => {
    expect(functions.map(({ name }) => name)).toEqual(expect.arrayContaining(needsNone))
  })

  const needExample = functions.map(({ name }) => name).filter((name) => !needsNone.includes(name))
  it.each(needExample)('%s has an example with its name', (name) => {
    const tags = exported.find((one) => one.name === name)?.symbol.getJsDocTags(checker) ?? []
    const texts = tags.filter((tag) => tag.name === 'example').map(({ text }) => ts.displayPartsToString(text))
    expect(texts.some((text) => new RegExp(`\\b${name}\\b`).test(text))).toBe(true)
  })

  // These are exported as a namespace, so their examples are those of the file
  it.each(
    Object.entries({
      AuthError: 'AuthError',
      Authenticator: 'instances',
      Challenge: 'Challenge',
    }),
  )('%s has an example', (name, file) => {
    const own = examplesOf(`src/core/${file}.ts`).filter(({ code }) => code.includes(`${name}.`))
    expect(own).not.toStrictEqual([])
  })
})
