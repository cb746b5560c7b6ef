/** A request with an API key, on each database, beside a look-up that a careful developer would write by hand with the same client. */
import { hash } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { crc32 } from 'node:zlib'
import type { RouterMiddleware } from '@koa/router'
import { apiKeyHeader } from '../../../dist/index.js'
import { apiKeys } from '../../../dist/keys.js'
import { expectAlike } from './alike.js'
import { accept, deny, giveUp, guard, once, tooLate, within } from './byHand.js'
import { withEngines, type Engine } from './engines.js'
import { operation } from './koaApps.js'
import { besideByHand, type Pace, type Pair } from './paired.js'
import type { Section } from './Section.js'
import type { KoaStore } from './sessionApps.js'
import { ask, headersOf } from './stub.js'

const answer: RouterMiddleware = (ctx) => {
  ctx.body = Reflect.get(Object(Reflect.get(ctx.request, 'auth')), 'owner')
}

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const hasChecksum = (key: string): boolean => {
  let rest = crc32(key.slice(0, -6))
  for (let at = key.length - 1; at >= key.length - 6; at--) {
    if (alphabet[rest % 62] !== key[at]) return false
    rest = Math.floor(rest / 62)
  }
  return true
}

interface Kept {
  readonly id: string
  readonly owner: string
  readonly scopes: ReadonlyArray<string>
  readonly createdAt: number
  readonly expiresAt?: number
  readonly revokedAt?: number
}

const isKept = (u: unknown): u is Kept => {
  const { id, owner, scopes, createdAt }: { readonly [K in keyof Kept]?: unknown } = Object(u)
  return typeof id === 'string' && typeof owner === 'string' && Array.isArray(scopes) && typeof createdAt === 'number'
}

const TIMEOUT = 2000

/** The form and the checksum of the key, one look-up by its digest, and whether it is revoked or expired. */
const byHand = (store: KoaStore): RequestListener => {
  const found = async (key: string | undefined) => {
    if (key === undefined || !/^acme_[0-9A-Za-z]{38}$/.test(key) || !hasChecksum(key)) return undefined
    const kept = await within(store.get(hash('sha256', key)), TIMEOUT)
    if (kept === tooLate) throw new Error('the store is silent')
    if (!isKept(kept) || kept.revokedAt !== undefined || (kept.expiresAt ?? Infinity) <= Date.now()) return undefined
    return { ...kept, scopes: Object.freeze(kept.scopes), createdAt: new Date(kept.createdAt) }
  }
  const check: RouterMiddleware = async (ctx, next) => {
    try {
      const principal = await found(once(ctx, 'x-api-key'))
      if (principal === undefined) return deny(ctx, 'ApiKey realm="api", in="header", name="X-API-Key"', 'X-API-Key')
      accept(ctx, principal, 'X-API-Key')
    } catch {
      return giveUp(ctx, 'X-API-Key')
    }
    return next()
  }
  return operation(check, answer)
}

const DAY = 86_400_000

type Contest = Awaited<ReturnType<typeof contestOn>>

const contestOn = async ({ name, mine, hand }: Engine) => {
  const keys = apiKeys({ prefix: 'acme', store: mine, touch: false })
  const { key, id } = await keys.issue({ owner: 'anna' })
  await hand.set(hash('sha256', key), { id, owner: 'anna', name: '', scopes: [], createdAt: Date.now() }, DAY)
  const auth = apiKeyHeader({ paramName: 'X-API-Key', authenticate: keys.authenticate })
  return { name, key, hand: byHand(hand), mine: operation(guard(auth), answer) }
}

// Throws where the two answer differently
const expectTwoAlike = async ({ name, key, hand, mine }: Contest): Promise<void> => {
  const wrong = [`${key}x`, `${key.slice(0, -1)}${key.endsWith('x') ? 'y' : 'x'}`]
  for (const sent of [key, ...wrong]) {
    const headers = headersOf({ 'X-API-Key': sent })
    await expectAlike({ name, url: '/x', headers, status: sent === key ? 200 : 401 }, { hand, mine })
  }
}

/** The section. */
export const keys = (pace: Pace): Promise<Section> =>
  withEngines(async (engines) => {
    const contests: Contest[] = []
    for (const engine of engines) contests.push(await contestOn(engine))
    for (const contest of contests) await expectTwoAlike(contest)
    const pairs = contests.map(({ name, key, hand, mine }): Pair => {
      const headers = headersOf({ 'X-API-Key': key })
      const asking = (listener: RequestListener) => () => ask(listener, '/x', headers)
      return { name: `a key on ${name}`, target: 1.1, hand: asking(hand), mine: asking(mine) }
    })
    return { title: 'API keys, beside a look-up written by hand', rows: await besideByHand(pairs, pace) }
  })
