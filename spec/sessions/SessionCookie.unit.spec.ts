/** The session cookie: its name, and what its reader knows and keeps. */
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import Koa, { type Context } from 'koa'
import { expect, it } from 'vitest'
import { SealedCookie, sessionCookieOf } from '../../src/sessions/SessionCookie.js'
import { heapKept } from '../support/runs/heap.js'

const app = new Koa()
app.keys = ['a key of at least 32 characters, for tests']
const sealed = new SealedCookie('session', 'app', () => app.keys)

const contextOf = (cookie: string): Context => {
  const request = new IncomingMessage(new Socket())
  if (cookie !== '') request.headers.cookie = cookie
  return app.createContext(request, new ServerResponse(request))
}
/** The cookie that a browser gets, and sends. */
const cookieOf = (id: string, user: string): string => {
  const ctx = contextOf('')
  sealed.give(ctx, id, { user, listed: 'entry' }, {})
  return String(ctx.response.get('Set-Cookie')).split(';')[0]!
}

const hintIn = (cookie: string) => sealed.hintOf(sealed.read(contextOf(cookie)))

it('what is remembered of a cookie keeps no header in memory', () => {
  const read = (at: number) => {
    const own = cookieOf(`id-${at}`, `user-${at}`)
    // as a parser makes it: one string for a header
    const header = Buffer.from(`${'x'.repeat(100_000)}=${at}; ${own}`, 'latin1').toString('latin1')
    return hintIn(header)?.user
  }
  read(0)
  const before = heapKept()
  for (let at = 1; at <= 300; at++) expect(read(at)).toBe(`user-${at}`)
  // 300 headers are 30 MB
  expect(heapKept() - before).toBeLessThan(10_000_000)
})

it.each<[string, ...Parameters<typeof sessionCookieOf>]>([
  ['session', undefined, undefined, undefined],
  ['session', undefined, 'shop.example', false],
  ['__Host-session', undefined, undefined, true],
  ['__Secure-session', undefined, 'shop.example', true],
  ['a__Secure-b', 'a__Secure-b', undefined, undefined],
  ['a__Host-b', 'a__Host-b', 'shop.example', undefined],
])('its name is %s: %s, domain %s, https %s', (name, ...given) => {
  expect(sessionCookieOf(...given)).toEqual({ name, domain: given[1] })
})

it('it says who signed in, if the name has at most 128 bytes', () => {
  const user = 'ä'.repeat(64)
  expect(hintIn(cookieOf('one', user))).toMatchObject({ user, listed: 'entry' })
  expect(hintIn(cookieOf('one', `${user}a`))).toBeUndefined()
})
