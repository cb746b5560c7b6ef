/** The entry points `koa-with-auth/testing` and `/testing/laws`: what they export, and what they need. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import * as testing from '../../src/testing/index.js'
import * as laws from '../../src/testing/laws/index.js'
import { importGraph } from '../support/papers/importGraph.js'
import { repository } from '../support/projects/typecheck.js'

const paths = ['index', 'laws/index'].map((name) => `${repository}src/testing/${name}.ts`)

describe('koa-with-auth/testing', () => {
  it('exports these names', () => {
    expect(Object.keys({ ...testing, ...laws }).sort()).toStrictEqual([
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
