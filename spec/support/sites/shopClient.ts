/** What clients of the shop send and read. */
import { expect } from 'vitest'
import { codeOfStep } from '../../../src/sign-in/codes.js'
import type { JsonClient, JsonReply } from '../servers/jsonClient.js'
import type { ShopSite } from './shopSite.js'

export const anna = { username: 'anna', password: 'anna-secret' }
export const html = { accept: 'text/html' }

const bytesOf = (secret: string): Buffer => {
  const bits = [...secret].map((one) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(one).toString(2).padStart(5, '0'))
  return Buffer.from((bits.join('').match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)))
}

/**
 * A code of an authenticator app, some steps from now. It is the next one by default: that of now may have set the app up, and the
 * one before is too old when a step ends meanwhile.
 */
export const codeOf = (secret: string, offset = 1): string =>
  codeOfStep(bytesOf(secret), Math.floor(Date.now() / 30_000) + offset)

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
