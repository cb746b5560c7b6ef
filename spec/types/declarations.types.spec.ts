/** The types of the PACKED declarations: exact where a principal is inferred, errors where a mistake is written. */
import { cpSync, readdirSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packedProject, type PackedProject } from '../support/packed.js'
import { ownOptions, typecheck, type Mistake } from '../support/typecheck.js'
import { mistakes, prelude } from './mistakes.js'

const fixtures = fileURLToPath(new URL('./fixtures', import.meta.url))
const named = readdirSync(fixtures)
const mistakenLine = prelude.split('\n').length + 1

const resolutions: Readonly<Record<string, ts.CompilerOptions>> = {
  nodenext: { module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext },
  bundler: { module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler },
}

let project: PackedProject
beforeAll(async () => {
  project = await packedProject(['koa', '@koa/router', 'fp-ts', 'io-ts', 'jose', '@types/koa', '@types/node'])
  cpSync(fixtures, project.folder, { recursive: true })
  mistakes.forEach(({ wrong, right }, at) => {
    writeFileSync(join(project.folder, `wrong${at}.ts`), `${prelude}\n${wrong}\n`)
    writeFileSync(join(project.folder, `right${at}.ts`), `${prelude}\n${right}\n`)
  })
}, 180_000)
afterAll(() => project?.remove())

describe.each(Object.entries(resolutions))('module resolution %s', (_name, resolution) => {
  let found: Mistake[] = []
  const of = (file: string) => found.filter((one) => basename(one.file) === file)

  beforeAll(() => {
    const { paths: _, ...options } = ownOptions()
    const files = readdirSync(project.folder).filter((name) => name.endsWith('.ts'))
    found = typecheck(
      files.map((name) => join(project.folder, name)),
      {
        ...options,
        ...resolution,
        skipLibCheck: false,
        typeRoots: [join(project.folder, 'node_modules/@types')],
        noUnusedLocals: false,
      },
      project.folder,
    )
  }, 120_000)

  it('the declarations themselves have no mistake, nor have those that they import (skipLibCheck: false)', () => {
    expect(found.filter(({ file }) => file === '' || file.includes('node_modules'))).toStrictEqual([])
  })

  it.each(named)('%s: exact', (file) => {
    expect(of(file)).toStrictEqual([])
  })

  it.each(mistakes.map((one, at) => ({ ...one, at })))('$description: an error', ({ at }) => {
    expect(of(`right${at}.ts`)).toStrictEqual([])
    const errors = of(`wrong${at}.ts`)
    expect(errors.length).toBeGreaterThan(0)
    // where the mistake is, and no mere slip of the test: a name or module that does not exist
    expect(errors.filter(({ line, code }) => line !== mistakenLine || [2304, 2307].includes(code))).toStrictEqual([])
  })
})
