/** Mistakes with upgrades are TypeErrors that name the place and the fix; and which subprotocol is a token. */
import { once } from 'node:events'
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import * as O from 'fp-ts/lib/Option.js'
import Router from '@koa/router'
import Koa, { type Request } from 'koa'
import { also, apiApp, apiKeyHeader, httpBearer, optional, withAuth } from 'koa-with-auth'
import { fromWebSocketProtocol, guardUpgrade, type Admitted } from 'koa-with-auth/upgrades'
import { describe, expect, expectTypeOf, it, vi } from 'vitest'
import { ownStrings } from '../../src/upgrades/guardUpgrade.js'
import { ownEnds } from '../support/runs/ownEnds.js'
import { expectLinear } from '../support/runs/growth.js'
import { stopped } from '../support/sites/eventsSite.js'

const app = new Koa()
const bearer = httpBearer({ authenticate: (_request, token) => token === 'good' && { user: 'anna' } })

// A call that TypeScript refuses, but JavaScript can write
const untyped = guardUpgrade as (...given: ReadonlyArray<unknown>) => unknown

describe('guardUpgrade', () => {
  it.each<[what: string, given: ReadonlyArray<unknown>, message: RegExp]>([
    ['no application', [undefined, bearer], /app must be a Koa application/],
    ['a router', [new Router(), bearer], /not a router or an apiApp/],
    ['an apiApp', [apiApp({ auth: null }), bearer], /not a router or an apiApp/],
    ['null', [app, null], /guardUpgrade\(app, a\): a is null; a request that anyone may send needs no guard/],
    ['undefined', [app, undefined], /guardUpgrade\(app, a\): a is undefined/],
    ['a guard', [app, withAuth(bearer)], /a is a guard, withAuth\(a\); pass the authenticator itself/],
    ['an Also', [app, also(bearer)], /must be an authenticator.*, not an object/],
    ['a route that is not a string', [app, bearer, { route: 7 }], /\{ route \}\) must be a string/],
    ['a prefix that no protocol has', [app, bearer, { bearerProtocol: 'a b' }], /bearerProtocol \}\) must be a name/],
  ])('refuses %s', (_what, given, message) => {
    expect(() => untyped(...given)).toThrow(TypeError)
    expect(() => untyped(...given)).toThrow(message)
  })

  it.each([
    { what: 'no request', given: [{}, new Socket(), Buffer.alloc(0)] },
    { what: 'a context of Koa', given: [app.createContext, new Socket(), Buffer.alloc(0)] },
    { what: 'no socket', given: [new IncomingMessage(new Socket()), undefined, Buffer.alloc(0)] },
    { what: 'no head', given: [new IncomingMessage(new Socket()), new Socket()] },
  ])('returns a guard that refuses $what', async ({ given }) => {
    const guard = untyped(app, bearer) as (...given: ReadonlyArray<unknown>) => Promise<unknown>
    await expect(guard(...given)).rejects.toThrow(
      /^guardUpgrade\(app, a\) returns a function of \(request, socket, head\); call it with the arguments of a server's event "upgrade"/,
    )
  })
})

const expiring = httpBearer({
  authenticate: (_request, token) => token === 'good' && { expiresAt: new Date('2100-01-01') },
})

const upgrading = async (token = 'good') => {
  const request = new IncomingMessage(new Socket())
  request.rawHeaders = ['Host', 'a', 'Authorization', `Bearer ${token}`]
  request.headers = { host: 'a', authorization: `Bearer ${token}`, upgrade: 'x' }
  const socket = new PassThrough()
  const before = socket.listenerCount('close')
  const admitted = await guardUpgrade(app, expiring)(request, socket, Buffer.alloc(0))
  return { socket, admitted: admitted!, listeners: () => socket.listenerCount('close') - before }
}

it('a refused upgrade leaves no timer when its socket is closed', async () => {
  stopped()
  const { socket, admitted } = await upgrading('bad')
  await once(socket, 'close')
  expect([admitted, vi.getTimerCount()]).toStrictEqual([undefined, 0])
})

it('an admitted upgrade leaves its socket as it was, and the signal waits until the socket is closed', async () => {
  const waiting = ownEnds()
  const { socket, admitted, listeners } = await upgrading()
  expect([listeners(), socket.listenerCount('error')]).toStrictEqual([0, 1])
  expect(admitted.signal).toBe(admitted.ends)
  expect([listeners(), waiting()]).toStrictEqual([1, 1])
  socket.destroy()
  await once(socket, 'close')
  expect(waiting()).toBe(0)
  const late = await upgrading()
  late.socket.destroy()
  await once(late.socket, 'close')
  expect([late.admitted.signal.aborted, waiting()]).toStrictEqual([false, 0])
})

it('guardUpgrade returns a guard with the types of its authenticators', () => {
  const key = apiKeyHeader({ authenticate: () => ({ client: 7 }) })
  expectTypeOf(guardUpgrade(app, bearer)).returns.resolves.toEqualTypeOf<Admitted<{ user: string }> | undefined>()
  expectTypeOf(guardUpgrade(app, [bearer, key])).returns.resolves.toEqualTypeOf<
    Admitted<{ user: string } | { client: number }> | undefined
  >()
  expectTypeOf(guardUpgrade(app, ({ ip }) => ip === '' && { ip })).returns.resolves.toEqualTypeOf<
    Admitted<{ ip: string }> | undefined
  >()
  expectTypeOf(guardUpgrade(app, optional(bearer))).returns.resolves.toEqualTypeOf<
    Admitted<{ user: string } | undefined> | undefined
  >()
})

describe('fromWebSocketProtocol', () => {
  const read = fromWebSocketProtocol({ prefix: 'bearer.' })
  const requestWith = (...lines: ReadonlyArray<string>): Request => {
    const req = new IncomingMessage(new Socket())
    req.rawHeaders = lines.flatMap((line) => ['Sec-WebSocket-Protocol', line])
    if (lines.length > 0) req.headers = { 'sec-websocket-protocol': lines.join(', ') }
    // Safe: a reader only reads fields
    return { req } as Request
  }

  it.each([
    { description: 'no field', lines: [] },
    { description: 'other protocols', lines: ['chat, superchat'] },
    { description: 'the prefix not at the beginning', lines: ['chat.bearer.x'] },
    { description: 'the prefix in another letter case', lines: ['Bearer.x'] },
    { description: 'the only one', lines: ['bearer.x'], expected: 'x' },
    { description: 'one of several', lines: ['chat, bearer.a.b-c_d'], expected: 'a.b-c_d' },
    { description: 'blanks and empty members', lines: [' ,chat ,\t bearer.x\t,'], expected: 'x' },
    { description: 'a second line of the field', lines: ['chat', 'bearer.x'], expected: 'x' },
    { description: 'only the prefix', lines: ['bearer.'], expected: '' },
    { description: 'two', lines: ['bearer.x, bearer.y'], expected: ['x', 'y'] },
    { description: 'the same token twice', lines: ['bearer.x, bearer.x'], expected: ['x', 'x'] },
    { description: 'two tokens, on two lines', lines: ['bearer.x', 'chat, bearer.y'], expected: ['x', 'y'] },
  ])('reads $description', ({ lines, expected }) => {
    expect(read(requestWith(...lines))).toStrictEqual(expected === undefined ? O.none : O.some(expected))
  })

  it('reads a megabyte of blanks in linear time', () => {
    const withBlanks = (count: number) => requestWith(`chat, a${' '.repeat(count)}b, bearer.x`)
    expect(read(withBlanks(1_000_000))).toStrictEqual(O.some('x'))
    expectLinear(8000, (count) => {
      const request = withBlanks(count)
      return () => read(request)
    })
  })

  it.each([{}, { prefix: '' }, { prefix: 'bearer ' }, { prefix: 'a,b' }, { prefix: 7 }, { prefix: 'x', other: 1 }])(
    'refuses the options %j',
    (options) => {
      expect(() => fromWebSocketProtocol(options as { prefix: string })).toThrow(TypeError)
      expect(() => fromWebSocketProtocol(options as { prefix: string })).toThrow(/^fromWebSocketProtocol/)
    },
  )
})

it('the parameters of a path are its own strings that are not empty, as a router of Koa has them', () => {
  const inherited: object = Object.create({ inherited: 'n1' }) as object
  const given = Object.assign(inherited, { id: 'n1', empty: '', list: ['n1'], number: 1 })
  const found = ownStrings(given)
  expect([Object.entries(found), Object.getPrototypeOf(found)]).toEqual([[['id', 'n1']], null])
})
