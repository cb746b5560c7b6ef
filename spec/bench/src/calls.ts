/**
 * What a request with a session calls of cryptography and of JSON, counted: this library, koa-session by hand, and other sessions.
 * Everything is wrapped before the libraries are loaded, so it is a process of its own.
 */
import * as crypto from 'node:crypto'
import { createRequire, syncBuiltinESMExports } from 'node:module'
import { apart } from './inProcess.js'
import { row, type Row } from './Section.js'
import { exactly } from './statistics.js'

type Counts = Record<string, number>
type Calls = Readonly<Record<string, Counts>>

const names: Readonly<Record<string, ReadonlyArray<string>>> = {
  crypto:
    'createHmac createHash hash createCipheriv createDecipheriv randomBytes timingSafeEqual pbkdf2 hkdfSync'.split(' '),
  subtle: 'importKey deriveBits sign verify encrypt decrypt'.split(' '),
  sodium: 'crypto_secretbox_easy crypto_secretbox_open_easy'.split(' '),
  JSON: ['parse', 'stringify'],
}

const counting = (counts: Counts): void => {
  const require = createRequire(import.meta.url)
  const places: Readonly<Record<string, object>> = {
    crypto: require('node:crypto') as object,
    // Safe: it is an object
    subtle: Object.getPrototypeOf(crypto.webcrypto.subtle) as object,
    sodium: require('sodium-native') as object,
    JSON,
  }
  for (const [place, object] of Object.entries(places)) {
    for (const name of names[place] ?? []) {
      const call: unknown = Reflect.get(object, name)
      if (typeof call !== 'function') continue
      Reflect.set(object, name, function (this: unknown, ...given: ReadonlyArray<unknown>): unknown {
        const label = `${place}.${name}`
        counts[label] = (counts[label] ?? 0) + 1
        return Reflect.apply(call, this, given)
      })
    }
  }
  syncBuiltinESMExports()
}

const counted = async (): Promise<Calls> => {
  const counts: Counts = {}
  counting(counts)
  const { sessionApps, visitorOf } = await import('./sessionApps.js')
  const { ask } = await import('./stub.js')
  const calls: Record<string, Counts> = {}
  for (const [name, make] of Object.entries(sessionApps)) {
    const listener = await make()
    const headers = await visitorOf(listener)
    // the first requests fill what is kept
    for (let at = 0; at < 3; at++) await ask(listener, '/me', headers)
    for (const label of Object.keys(counts)) delete counts[label]
    await ask(listener, '/me', headers)
    calls[name] = { ...counts }
  }
  return calls
}

const calls = apart(import.meta.url, counted)

/** A row for each library: the calls of cryptography, and all calls as a note. */
export const callsInRequest = async (): Promise<ReadonlyArray<Row>> =>
  Object.entries(await calls()).map(([name, counts]) => {
    const all = Object.entries(counts)
    const ofCrypto = all.filter(([label]) => !label.startsWith('JSON.'))
    const value = exactly(ofCrypto.reduce((sum, [, count]) => sum + count, 0))
    const note = all.map(([label, count]) => `${label} ${count}`).join(', ')
    return row(`calls of cryptography, ${name}`, value, 'calls', { note })
  })
