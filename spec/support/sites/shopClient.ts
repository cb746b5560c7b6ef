/** What clients of the shop send and read. */
import { expect } from 'vitest'
import { codeOf } from '../servers/authenticatorApp.js'
import type { JsonClient, JsonReply } from '../servers/jsonClient.js'
import type { ShopSite } from './shopSite.js'

export const anna = { username: 'anna', password: 'anna-secret' }
export const html = { accept: 'text/html' }

export const member = (reply: JsonReply, name: string): unknown => (reply.body as Record<string, unknown>)[name]

/** The status, and the reason of a failure. */
export const outcome = (reply: JsonReply) => [reply.status, member(reply, 'reason')]

export const userOf = async (visitor: JsonClient) => member(await visitor.get('/me'), 'user')

/** A user with a second factor. The code of now is spent. */
export const enrolled = async (site: Pick<ShopSite, 'signedIn'>) => {
  const visitor = await site.signedIn()
  const secret = String(member(await visitor.post('/factors/totp'), 'secret'))
  const used = codeOf(secret, 0)
  const confirmed = await visitor.post('/factors/totp/confirm', { code: used })
  expect(confirmed.status).toBe(200)
  return { visitor, secret, used, recovery: member(confirmed, 'recovery') as string[] }
}
