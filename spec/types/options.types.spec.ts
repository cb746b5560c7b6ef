/**
 * Every option that can be left out can also be `undefined`, even with `exactOptionalPropertyTypes`: `httpBearer({
 * authenticate, realm: process.env.REALM })` compiles. spec/mistakes/undefined.http.spec.ts tests that both behave the
 * same.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import type ts from 'typescript'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { optionalProperties } from '../support/papers/optionTypes.js'
import { ownOptions, programOf, repository } from '../support/projects/typecheck.js'

const folder = `${repository}spec/.generated/options-${process.pid}/`
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const planted = [
  ['of a function', 'export const f = (options: { a?: string }) => options', ['f(options): a']],
  ['of a declared function', 'export function f(o?: { a?: string }) { return o }', ['f(o): a']],
  ['of an overload', 'export function f(o: { a?: 1 }): void\nexport function f(o?: unknown) { return o }', ['f(o): a']],
  ['of a class', 'export class C { constructor(o: { a?: 1 }) { void o } }', ['C(o): a']],
  ['of a method', 'export const f = () => ({ g: (o: { a?: 1 }) => o })', ['f().g(o): a']],
  ['of what a function returns', 'export const f = () => (o: { a?: 1 }) => o', ['f()(o): a']],
  ['in an option', 'export const f = (o: { a?: { b?: 1 } | false | undefined }) => o', ['f(o).a: b']],
  ['in a list', 'export const f = (o: { a: ReadonlyArray<{ b?: 1 }> }) => o', ['f(o).a: b']],
  ['in what a hook returns', 'export const f = (o: { a: () => { b?: 1 } }) => o', ['f(o).a returns: b']],
  ['in what an async hook returns', 'export const f = (a: () => Promise<{ b?: 1 }>) => a', ['f(a) returns: b']],
  ['of an interface', 'interface O { a?: string }\nexport const f = (o: O) => o', ['f(o): a']],
  ['that is inherited', 'interface O extends Partial<{ a: 1 }> { b: 1 }\nexport const f = (o: O) => o', ['f(o): a']],
  ['that is mapped', "type O = { [K in 'a' | 'b']?: K }\nexport const f = (o: O) => o", ['f(o): a', 'f(o): b']],
  ['of a union', 'export const f = (o: { a?: 1 } | { b?: undefined; c: 1 }) => o', ['f(o): a']],
  ['of an intersection', 'type P = { a?: 1 }\nexport const f = (o: P & { b: 1 }) => o', ['f(o): a']],
  ['of a generic type', 'export const f = <R>(o: { a?: (x: 1) => R }) => o', ['f(o): a']],
  ['of a type parameter', 'export const f = <O extends { a?: 1 }>(o: O) => o', ['f(o): a']],
  ['of an option that must not be given', 'export const f = (o: { a?: never }) => o', ['f(o): a']],
  [
    'but not one that takes undefined',
    'export const f = (o: { a?: string | undefined; b: number; c?: unknown }) => o',
    [],
  ],
  ['but not one in what it returns', 'export const f = (): { a?: string } => ({})', []],
  ['but not one in what hooks get', 'export const f = (g: (o: { a?: string }) => void) => void g', []],
] as const

describe('the search finds an option that does not take undefined', () => {
  let program: ts.Program
  const pathOf = (at: number) => `${folder}planted${at}.ts`
  beforeAll(() => {
    mkdirSync(folder, { recursive: true })
    planted.forEach(([, text], at) => writeFileSync(pathOf(at), `${text}\n`))
    program = programOf(
      planted.map((_one, at) => pathOf(at)),
      { ...ownOptions(), types: [] },
    )
  })

  it.each(planted.map(([name, , found], at) => ({ name, found, at })))('$name', ({ found, at }) => {
    expect(program.getSemanticDiagnostics(program.getSourceFile(pathOf(at)))).toStrictEqual([])
    const lacking = optionalProperties(program, [pathOf(at)], folder).filter(({ takesUndefined }) => !takesUndefined)
    expect(lacking.map(({ way, declared }) => `${way}: ${declared.split(/[.:] ?/).pop()}`)).toStrictEqual(found)
  })
})

describe('the options of every entry point', () => {
  const entries = Object.values(ownOptions().paths ?? {}).map(([path = '']) => repository + path.slice(2))
  let all: ReturnType<typeof optionalProperties> = []
  beforeAll(() => {
    all = optionalProperties(programOf(entries, ownOptions()), entries, `${repository}src/`)
  })

  it('are found', () => {
    const ways = all.map(({ way }) => way)
    for (const name of ['apiApp', 'seal', 'httpJwt', 'sessions', 'apiKeys', 'docs', 'expectGuarded']) {
      expect(
        ways.some((way) => way.startsWith(`${name}(`)),
        name,
      ).toBe(true)
    }
    for (const name of ['redisStore', 'redisKeyStore', 'guardUpgrade', 'perFailure']) {
      expect(
        ways.some((way) => way.startsWith(`${name}(`)),
        name,
      ).toBe(true)
    }
    expect(all.length).toBeGreaterThan(150)
  })

  // A mistake in the order of imports gives `undefined`, which would make an operation public: a TypeError at run time
  it('take undefined, except auth', () => {
    expect(all.filter(({ takesUndefined }) => !takesUndefined).map(({ declared }) => declared)).toStrictEqual([
      'src/apiApp.ts: auth',
      // no such property exists: it carries the types of objects
      'src/core/Exchange.ts: Finds.finds',
      'src/openapi/docs.ts: DocsPageOptions.auth',
    ])
  })
})
