/**
 * One application written with `apiApp`, on plain Koa, and with fp-ts's `pipe`: byte-identical responses to the whole
 * corpus.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { corpus, send, type Ground } from '../../support/models/corpus.js'
import { corpusApp, macrosFor, styles } from '../../support/sites/corpusApp.js'
import { listen } from '../../support/servers/server.js'

const names = Object.keys(styles) as Array<keyof typeof styles>
let grounds: ReadonlyArray<Ground & { readonly close: () => Promise<void> }>

beforeAll(async () => {
  grounds = await Promise.all(
    names.map(async (name) => {
      const { app, calls } = corpusApp(name)
      const served = await listen(app)
      const own = await macrosFor(served.url)
      return { port: served.port, macros: own, calls, close: served.close }
    }),
  )
})
afterAll(() => Promise.all(grounds.map(({ close }) => close())))

// What differs if a second passes between two requests
const stable = async (ground: Ground, request: (typeof corpus.cases)[number]['request']) => {
  const before = ground.calls()
  const { status, headers, body } = await send(ground, request)
  return { status, body, headers: headers.filter(([name]) => name !== 'date'), ran: ground.calls() - before }
}

describe.each([...new Set(corpus.cases.map(({ target }) => target))])('three ways, one response: %s', (target) => {
  const cases = corpus.cases.filter((kase) => kase.target === target)

  it.each(cases.map(({ id, request }) => [id, request] as const))('%s', async (_id, request) => {
    const [first, ...others] = await Promise.all(grounds.map((ground) => stable(ground, request)))
    for (const other of others) expect(other).toEqual(first)
  })
})

it('there are three ways', () => {
  expect(names).toHaveLength(3)
})
