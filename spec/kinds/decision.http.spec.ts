/** Section 5.1 of the requirements: when an authenticator passes. */
import { httpBearer, withAuth } from 'koa-with-auth'
import { describe, expect, test, vi } from 'vitest'
import { bearer, challenge, dialects, expectDenied, expectPassed, operation } from '../support/models/behavior.js'
import { kinds, type Hook } from '../support/models/behaviorKinds.js'

const truthy: ReadonlyArray<readonly [name: string, answer: unknown]> = [
  ['true', true],
  ['1', 1],
  ['-1', -1],
  ['Infinity', Infinity],
  ['1n', 1n],
  ['a string', 'anna'],
  ['"false"', 'false'],
  ['"0"', '0'],
  ['an array', [0]],
  ['a date', new Date(0)],
  ['a symbol', Symbol.for('principal')],
]

const falsy: ReadonlyArray<readonly [name: string, answer: unknown]> = [
  ['false', false],
  ['0', 0],
  ['-0', -0],
  ['0n', 0n],
  ['NaN', NaN],
  ['an empty string', ''],
  ['null', null],
  ['no value', undefined],
]

describe.each(dialects)('%s', (_dialect, say) => {
  test.each(truthy)('5.1.1 a truthy result passes and becomes request.auth: %s', async (_name, answer) => {
    const hook = vi.fn(() => say(answer))
    const { ask } = await operation(withAuth(httpBearer({ authenticate: hook })))
    expectPassed(await ask('/x', bearer('t')), answer)
    expect(hook).toHaveBeenCalledTimes(1)
  })

  test.each(falsy)('5.1.2 a falsy result fails: %s', async (_name, answer) => {
    const hook = vi.fn(() => say(answer))
    const { ask } = await operation(withAuth(httpBearer({ authenticate: hook })))
    expectDenied(await ask('/x', bearer('t')), 401, [challenge.refusedBearer])
    expect(hook).toHaveBeenCalledTimes(1)
  })

  test.each(kinds)('5.1.1, 5.1.2 $kind passes with a truthy result, and fails with a falsy one', async (row) => {
    const { ask } = await operation(withAuth(row.make(() => say({ id: 1 }))))
    expectPassed(await ask(...row.carrying), { id: 1 })
    const refusing = await operation(withAuth(row.make(() => say(undefined))))
    expectDenied(await refusing.ask(...row.carrying), 401, [row.refused])
  })

  test('5.1.3 a plain function passes and fails in the same way', async () => {
    const { ask } = await operation(withAuth((request) => say(request.get('X-Client') || undefined)))
    expectPassed(await ask('/x', { headers: { 'X-Client': 'Acme' } }), 'Acme')
    expectDenied(await ask(), 401, [challenge.custom])
  })
})

describe('5.1.3 any function is accepted', () => {
  interface Asking {
    readonly get: (name: string) => string
  }
  const desk = {
    known: 'Acme',
    find(request: Asking) {
      const client = request.get('X-Client')
      return client === this.known && { client }
    },
  }
  const callables: ReadonlyArray<readonly [name: string, callable: (request: Asking) => unknown]> = [
    ['an arrow', (request) => desk.find(request)],
    [
      'a function',
      function (request) {
        return desk.find(request)
      },
    ],
    ['an async function', async (request) => desk.find(request)],
    ['a bound method', desk.find.bind(desk)],
    ['a proxy of a function', new Proxy((request: Asking) => desk.find(request), {})],
  ]
  test.each(callables)('5.1.3 %s that takes only the request is accepted', async (_name, callable) => {
    const { ask } = await operation(withAuth(callable))
    expectPassed(await ask('/x', { headers: { 'X-Client': 'Acme' } }), { client: 'Acme' })
    expectDenied(await ask('/x', { headers: { 'X-Client': 'Ecma' } }), 401, [challenge.custom])
  })

  test('5.1.3 a function without parameters is accepted, too', async () => {
    const open = await operation(withAuth(() => 'anybody'))
    expectPassed(await open.ask(), 'anybody')
    const closed = await operation(withAuth(() => undefined))
    expectDenied(await closed.ask(), 401, [challenge.custom])
  })
})

describe('5.1.4 the kind reads the credential', () => {
  test.each(kinds)(
    '5.1.4 $kind calls the hook once with the credential; without one it fails without a call',
    async (row) => {
      const hook = vi.fn<Hook>((_request, ...credentials) => credentials)
      const { ask } = await operation(withAuth(row.make(hook)))
      expectPassed(await ask(...row.carrying), row.credentials)
      expect(hook).toHaveBeenCalledTimes(1)
      expectDenied(await ask(), 401, [row.absent])
      expect(hook).toHaveBeenCalledTimes(1)
    },
  )
})
