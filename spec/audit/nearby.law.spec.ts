/** The routes that are compared with a route: all that can answer its requests, and few others. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { relate, routedPath } from '../../src/audit/RoutedPath.js'
import { nearbyAmong } from '../../src/audit/paths.js'
import Router from '@koa/router'

const acceptedBy = (path: string | RegExp) => {
  const [layer] = new Router().get(path, () => {}).stack
  return { path, accepted: routedPath(layer!) }
}

const segment = fc.constantFrom('a', 'A', 'b', 'ß', ':x', 'a:x', '*rest', '{b}', 'a-:x', '')
const path = fc
  .array(segment, { maxLength: 4 })
  .map((all) => `/${all.map((one, at) => one.replace('x', `x${at}`).replace('rest', `rest${at}`)).join('/')}`)
const regexps = fc.constantFrom(/^\/a/, /b$/, /^\/a\/b$/)
const pattern = fc.oneof({ weight: 9, arbitrary: path }, { weight: 1, arbitrary: regexps })

describe('the routes near a path', () => {
  it('are all that share a request with it, in their order', () => {
    fc.assert(
      fc.property(fc.array(pattern, { minLength: 1, maxLength: 12 }), (paths) => {
        const all = paths.map(acceptedBy)
        const near = nearbyAmong(all)
        for (const { accepted } of all) {
          const found = near(accepted)
          expect(all.filter((one) => found.includes(one))).toEqual(found)
          for (const one of all) {
            if (!found.includes(one))
              expect([one.path, relate(one.accepted, accepted).overlap]).toEqual([one.path, 'no'])
          }
        }
      }),
      { examples: [[['//', '/{b}/*rest1', '/']], [['/:x0//*rest1', '/a', '/a/', '/*rest0']]] },
    )
  })

  it('are few of thousands', () => {
    const all = Array.from({ length: 2000 }, (_, at) => acceptedBy(`/api/things${at}/:id`))
    const other = acceptedBy('/api/:kind/1')
    const near = nearbyAmong([...all, other, acceptedBy('/api/things8/x/*rest')])
    expect(near(all[7]!.accepted)).toEqual([all[7], other])
    expect(near(other.accepted)).toHaveLength(2001)
    expect(near(acceptedBy('/api/things8').accepted)).toEqual([])
  })
})
