/** Section 5.5 of the requirements: several authenticators as alternatives. */
import { apiKeyHeader, apiKeyQuery, httpBearer, withAuth } from 'koa-with-auth'
import { describe, expect, test, vi } from 'vitest'
import { challenge, dialects, expectDenied, expectPassed, operation } from '../support/models/behavior.js'
import { kinds, listOf } from '../support/models/behaviorKinds.js'

// A list of three whose hooks record that they were called
const three = (say: (answer: unknown) => unknown = (answer) => answer) => {
  const asked: string[] = []
  const member = (name: string) => (_request: unknown, key: string) => {
    asked.push(name)
    return say(key === 'good' && { via: name })
  }
  const list = [
    apiKeyQuery({ authenticate: member('query') }),
    apiKeyHeader({ authenticate: member('header') }),
    httpBearer({ authenticate: member('bearer') }),
  ] as const
  return { asked, list }
}
const headers = (key?: string, token?: string) => ({
  headers: { ...(key && { key }), ...(token && { Authorization: `Bearer ${token}` }) },
})

describe.each(dialects)('%s', (_dialect, say) => {
  test('5.5.1 authenticators are tried in the order of the list', async () => {
    const { asked, list } = three(say)
    const { ask } = await operation(withAuth([...list]))
    expectPassed(await ask('/x?key=bad', headers('bad', 'good')), { via: 'bearer' })
    expect(asked).toEqual(['query', 'header', 'bearer'])

    asked.length = 0
    const reversed = await operation(withAuth([list[2], list[1], list[0]]))
    expectPassed(await reversed.ask('/x?key=good', headers('bad', 'bad')), { via: 'query' })
    expect(asked).toEqual(['bearer', 'header', 'query'])
  })

  test('5.5.2 the first one that passes wins, and no later hook is called', async () => {
    const { asked, list } = three(say)
    const { ask } = await operation(withAuth([...list]))
    expectPassed(await ask('/x?key=good', headers('good', 'good')), { via: 'query' })
    expect(asked).toEqual(['query'])
    asked.length = 0
    expectPassed(await ask('/x?key=bad', headers('good', 'good')), { via: 'header' })
    expect(asked).toEqual(['query', 'header'])
  })

  test('5.5.3 [query key, header key]: the header key is checked if the query key is missing or invalid', async () => {
    const { asked, list } = three(say)
    const { ask } = await operation(withAuth([list[0], list[1]]))
    expectPassed(await ask('/x', headers('good')), { via: 'header' })
    expectPassed(await ask('/x?key=', headers('good')), { via: 'header' })
    expect(asked).toEqual(['header', 'header'])
    expectPassed(await ask('/x?key=bad', headers('good')), { via: 'header' })
    expectPassed(await ask('/x?key=good', headers('bad')), { via: 'query' })
    expect(asked).toEqual(['header', 'header', 'query', 'header', 'query'])
  })

  test('5.5.4 if all fail, an authentication error with the challenges of all is returned', async () => {
    const { asked, list } = three(say)
    const { ask } = await operation(withAuth([...list]))
    const keys = [challenge.key('query'), challenge.key('header')]
    expectDenied(await ask(), 401, [...keys, challenge.bearer])
    expect(asked).toEqual([])
    expectDenied(await ask('/x?key=bad', headers('bad', 'bad')), 401, [...keys, challenge.refusedBearer])
    expect(asked).toEqual(['query', 'header', 'bearer'])
  })
})

describe('5.5 every kind in a list', () => {
  const list = () => kinds.map(({ kind, make }) => make(() => ({ via: kind })))

  test.each(kinds)('5.5.2 $kind wins if only its credential is sent', async ({ kind, carrying }) => {
    const { ask } = await operation(withAuth(listOf(list())))
    expectPassed(await ask(...carrying), { via: kind })
  })

  test('5.5.4 if all credentials are absent, all challenges are offered', async () => {
    const { ask } = await operation(withAuth(listOf(list())))
    expectDenied(
      await ask(),
      401,
      kinds.map(({ absent }) => absent),
    )
  })

  test('5.5.1 functions and a list of one are accepted, too', async () => {
    const first = vi.fn(() => false)
    const { ask } = await operation(withAuth([() => first(), async () => undefined, () => 'third']))
    expectPassed(await ask(), 'third')
    expect(first).toHaveBeenCalledTimes(1)
    const single = await operation(withAuth([httpBearer({ authenticate: () => true })]))
    expectDenied(await single.ask(), 401, [challenge.bearer])
  })
})
