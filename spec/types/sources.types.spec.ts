/**
 * What TypeScript says of the sources. Every example in docstrings, README and guides typechecks, every public export has
 * a docstring, and options can be `undefined`. All of this reads one program, because making one takes seconds.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import ts from 'typescript'
import { afterAll, describe, expect, it } from 'vitest'
import { allExamples, examplesOf, moduleOf, type DocExample } from '../support/papers/docExamples.js'
import { optionalProperties } from '../support/papers/optionTypes.js'
import { exportedModules, mistakesOfFiles, ownOptions, programOf, repository } from '../support/projects/typecheck.js'

// One folder for each process, so that parallel runs use different ones
const folder = `${repository}spec/.generated/types-${process.pid}/`
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const examples = allExamples()
const exampleAt = ({ place }: DocExample) => `${folder}${place.replaceAll(/[^A-Za-z0-9]+/g, '-')}.ts`
const entries = exportedModules.map(({ name, source }) => ({ name, path: repository + source }))

mkdirSync(folder, { recursive: true })
for (const example of examples) writeFileSync(exampleAt(example), moduleOf(example))
const program = programOf(
  [...entries.map(({ path }) => path), ...examples.map(exampleAt)],
  // An example ends with the value that it makes
  { ...ownOptions(), noUnusedLocals: false, noUnusedParameters: false },
)
const checker = program.getTypeChecker()

describe('examples', () => {
  const mistakes = mistakesOfFiles(program, examples.map(exampleAt))

  it('are found', () => {
    expect(examples.length).toBeGreaterThan(20)
    expect(new Set(examples.map(exampleAt)).size).toBe(examples.length)
  })

  it.each(examples)('$place typechecks', (example) => {
    const own = mistakes.filter(({ file }) => exampleAt(example).endsWith(file))
    expect(own.map(({ line, message }) => `line ${line}: ${message}`)).toStrictEqual([])
  })

  it('have no other mistake', () => {
    expect(mistakes.filter(({ file }) => !file.startsWith('spec/.generated/types-'))).toStrictEqual([])
  })
})

// Predicates, readers of a request field, the default mapper, and calls that are one line
const needsNone = [
  ...['isAuthenticator', 'fromAuthorization', 'fromCookie', 'fromHeader', 'fromQuery', 'defaultErrorMapper'],
  ...['addProof', 'proofsOf', 'logOut', 'afterRpLogout', 'emailVerification'],
  ...['sessionLoginAuth', 'sessionLoginAuthSuperuser'],
]

describe('public exports', () => {
  const resolved = (symbol: ts.Symbol) =>
    symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
  const isFunction = (symbol: ts.Symbol) =>
    (symbol.flags & ts.SymbolFlags.Value) !== 0 && checker.getTypeOfSymbol(symbol).getCallSignatures().length > 0
  const exported = entries.flatMap(({ name: entry, path }) =>
    checker
      .getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(path)!)!)
      .map((symbol) => ({ entry, name: symbol.name, symbol: resolved(symbol) })),
  )
  const functions = exported.filter(({ symbol }) => isFunction(symbol))
  const examplesFor = (symbol: ts.Symbol) =>
    symbol
      .getJsDocTags(checker)
      .filter(({ name }) => name === 'example')
      .map(({ text }) => ts.displayPartsToString(text))
  const naming = (name: string) => new RegExp(`\\b${name}\\b`)

  // of options, the members say what they are
  it.each(exported.filter(({ name }) => !name.endsWith('Options')))('$name of $entry has a docstring', ({ symbol }) => {
    const doc = ts.displayPartsToString(symbol.getDocumentationComment(checker))
    const see = symbol.getJsDocTags(checker).some(({ name }) => name === 'see')
    expect(doc !== '' || see).toBe(true)
  })

  it('what needs no example exists', () => {
    expect(functions.map(({ name }) => name)).toEqual(expect.arrayContaining(needsNone))
  })

  it.each(functions.filter(({ name }) => !needsNone.includes(name)))(
    '$name of $entry has an example with its name',
    ({ name, symbol }) => {
      expect(examplesFor(symbol).some((text) => naming(name).test(text))).toBe(true)
    },
  )

  // These are exported as a namespace, so their examples are those of the file
  it.each([
    ['AuthError', 'AuthError'],
    ['Authenticator', 'instances'],
    ['Challenge', 'Challenge'],
  ])('%s has an example', (name, file) => {
    const own = examplesOf(`src/core/${file}.ts`).filter(({ code }) => code.includes(`${name}.`))
    expect(own).not.toStrictEqual([])
  })
})

// Options that can be left out can also be `undefined`, even with `exactOptionalPropertyTypes`: `httpBearer({
// authenticate, realm: process.env.REALM })` compiles. spec/mistakes/undefined.http.spec.ts tests that both behave
// the same.
describe('the options of every entry point', () => {
  const paths = entries.map(({ path }) => path)
  const all = optionalProperties(program, paths, `${repository}src/`)

  it('are found', () => {
    const ways = all.map(({ way }) => way)
    const some = ['apiApp', 'seal', 'httpJwt', 'sessions', 'apiKeys', 'docs', 'expectGuarded']
    const others = ['postgresStore', 'guardRequest', 'perFailure']
    const unseen = [...some, ...others].filter((name) => !ways.some((way) => way.startsWith(`${name}(`)))
    expect(unseen).toStrictEqual([])
    // a search that has become blind for one form of options finds less
    expect(all.length).toBeGreaterThan(400)
  })

  // A mistake in the order of imports gives `undefined`, which would make an operation public: a TypeError at run time
  it('take undefined, except those whose absence opens something', () => {
    expect(all.filter(({ takesUndefined }) => !takesUndefined).map(({ declared }) => declared)).toStrictEqual([
      'src/apiApp.ts: auth',
      // no such property exists: it carries the types of objects
      'src/core/Exchange.ts: Finds.finds',
      'src/openapi/docs.ts: DocsPageOptions.auth',
      // a variable that is not set would drop the check, the secret or the second factor
      'src/sign-in/beginning.ts: BeginOptions.ask',
      'src/sign-in/mail.ts: PasswordResetOptions.isGood',
      'src/sign-in/oidc/Client.ts: Client.key',
      'src/sign-in/oidc/Client.ts: Client.secret',
      'src/sign-in/oidc/exchange.ts: ExchangeOptions.scope',
      'src/sign-in/oidc/oauth2.ts: OAuth2Options.issuer',
      'src/sign-in/oidc/oidc.ts: OidcOptions.acrValues',
      'src/sign-in/oidc/oidc.ts: OidcOptions.idTokenAlgorithm',
      'src/sign-in/oidc/oidc.ts: OidcOptions.maxAge',
      'src/sign-in/passwordSignIn.ts: PasswordSignInOptions.factors',
    ])
  })
})
