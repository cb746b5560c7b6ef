/** The codes of errors are a closed union, and each is given to an error of the sources. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { sources } from '../support/papers/docExamples.js'
import { repository } from '../support/projects/typecheck.js'

const read = (path: string) => readFileSync(repository + path, 'utf8')
// of Node, which are compared with
const ofNode = ['ERR_HTTP_HEADERS_SENT', 'ERR_UNKNOWN_FILE_EXTENSION']

describe('ErrorCode', () => {
  it('is the union of all codes in the sources', () => {
    const union = /export type ErrorCode =\n([^]*?)\n\n/.exec(read('src/core/data.ts'))?.[1] ?? ''
    const listed = [...union.matchAll(/'(ERR_\w+)'/g)].map(([, code]) => code)
    const given = sources()
      .filter((path) => path !== 'src/core/data.ts')
      .flatMap((path) => [...read(path).matchAll(/'(ERR_\w+)'/g)].map(([, code = '']) => code))
      .filter((code) => !ofNode.includes(code))
    expect(listed.length).toBeGreaterThan(5)
    expect([...new Set(given)].sort()).toStrictEqual(listed.toSorted())
  })
})
