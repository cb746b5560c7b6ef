/** Every example in docstrings, README and guides runs. spec/types/sources.types.spec.ts typechecks them. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { allExamples, moduleOf, type DocExample } from '../support/papers/docExamples.js'
import { repository } from '../support/projects/typecheck.js'

// One folder for each process, so that parallel runs use different ones
const folder = `${repository}spec/.generated/docs-${process.pid}`
const pathOf = ({ place }: DocExample) => `${folder}/${place.replaceAll(/[^A-Za-z0-9]+/g, '-')}.ts`

describe('examples', () => {
  const examples = allExamples().filter(({ runs }) => runs)

  beforeAll(() => {
    mkdirSync(folder, { recursive: true })
    for (const example of examples) writeFileSync(pathOf(example), moduleOf(example))
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it('are found', () => {
    expect(examples.length).toBeGreaterThan(20)
  })

  it.each(examples)('$place runs', async (example) => {
    await import(/* @vite-ignore */ pathToFileURL(pathOf(example)).href)
  })
})
