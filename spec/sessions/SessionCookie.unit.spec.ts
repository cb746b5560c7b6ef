/** What the reader of the session cookie keeps. */
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import Koa, { type Context } from 'koa'
import { expect, it } from 'vitest'
import { SealedCookie } from '../../src/sessions/SessionCookie.js'
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
