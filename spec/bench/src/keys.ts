/** A request with an API key, on each database, beside a look-up that a careful developer would write by hand with the same client. */
import { hash } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { crc32 } from 'node:zlib'
import Router, { type RouterMiddleware } from '@koa/router'
import { apiKeyHeader, withAuth } from '../../../dist/index.js'
import { apiKeys } from '../../../dist/keys.js'
import { accept, deny, giveUp, once } from './byHand.js'
import { withEngines, type Engine } from './engines.js'
import { listenerOf } from './koaApps.js'
import { microseconds, race, ratio, type Contestant, type Pace } from './paired.js'
import type { Row, Section } from './Section.js'
import type { KoaStore } from './sessionApps.js'
import { answerOf, ask, headersOf } from './stub.js'

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
const inTime = <A>(given: Promise<A>): Promise<A> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the store is silent')), TIMEOUT)
    given.then(resolve, reject).finally(() => clearTimeout(timer))
  })

/** The form and the checksum of the key, one look-up by its digest, and whether it is revoked or expired. */
const byHand = (store: KoaStore): RequestListener => {
  const found = async (key: string | undefined) => {
    if (key === undefined || !/^acme_[0-9A-Za-z]{38}$/.test(key) || !hasChecksum(key)) return undefined
    const kept = await inTime(store.get(hash('sha256', key)))
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
  return listenerOf(new Router().get('/x', check, answer))
}

const DAY = 86_400_000

interface Contest {
  readonly name: string
  readonly key: string
  readonly hand: RequestListener
  readonly mine: RequestListener
}

const contestOn = async ({ name, mine, hand }: Engine): Promise<Contest> => {
  const keys = apiKeys({ prefix: 'acme', store: mine, touch: false })
  const { key, id } = await keys.issue({ owner: 'anna' })
  await hand.set(hash('sha256', key), { id, owner: 'anna', name: '', scopes: [], createdAt: Date.now() }, DAY)
  const guard = withAuth(apiKeyHeader({ paramName: 'X-API-Key', authenticate: keys.authenticate }))
  // Safe: the router here knows no principals
  const ours = listenerOf(new Router().get('/x', guard as unknown as RouterMiddleware, answer))
  return { name, key, hand: byHand(hand), mine: ours }
}

// Throws where the two answer differently
const expectAlike = async ({ name, key, hand, mine }: Contest): Promise<void> => {
  for (const [sent, status] of [
    [key, 200],
    [`${key}x`, 401],
    [`${key.slice(0, -1)}${key.endsWith('x') ? 'y' : 'x'}`, 401],
  ] as const) {
    const answers = await Promise.all([hand, mine].map((one) => answerOf(one, '/x', headersOf({ 'X-API-Key': sent }))))
    const texts = answers.map((one) => JSON.stringify({ ...one, headers: Object.entries(one.headers).sort() }))
    if (answers[0]?.status !== status || texts[0] !== texts[1]) throw new Error(`${name}: ${texts.join('\n')}`)
  }
}

/** The section. */
export const keys = (pace: Pace): Promise<Section> =>
  withEngines(async (engines) => {
    const contests: Contest[] = []
    for (const engine of engines) contests.push(await contestOn(engine))
    for (const contest of contests) await expectAlike(contest)
    const times = await race(
      contests.flatMap(({ name, key, hand, mine }): ReadonlyArray<Contestant> => {
        const headers = headersOf({ 'X-API-Key': key })
        const asking = (label: string, listener: RequestListener): Contestant => ({
          name: label,
          run: () => ask(listener, '/x', headers),
        })
        return [asking(`${name} by hand`, hand), asking(`${name} by hand, again`, hand), asking(name, mine)]
      }),
      pace,
    )
    const rows = contests.map(({ name }): Row => ({
      name: `a key on ${name}`,
      value: ratio(times, name, `${name} by hand`),
      unit: 'times',
      target: 1.1,
      control: ratio(times, `${name} by hand, again`, `${name} by hand`),
      note: `by hand ${microseconds(times, `${name} by hand`).toFixed(1)} us`,
    }))
    return { title: 'API keys, beside a look-up written by hand', rows }
  })
