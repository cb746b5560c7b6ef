/**
 * A JSON object of a provider: by HTTP, in time, of a bounded size, without following redirects.
 *
 * What goes wrong is an `Outage`, whose message names the kind of problem and holds nothing that was answered or sent.
 */
import type { Json } from './claims.js'
import { objectOf } from './compact.js'

/** A provider that does not answer as it should. */
export class Outage extends Error {
  override readonly name = 'Outage'
  /** Whether it answered at all, if wrongly. */
  readonly isAnswer: boolean
  constructor(problem: string, isAnswer: boolean) {
    super(problem)
    this.isAnswer = isAnswer
  }
}

const MAX_BYTES = 1024 * 1024

/** Fetches an object. Rejects with an `Outage` for everything but a 200 of a JSON object. */
export const fetchJson = async (url: string, init: RequestInit): Promise<Json> => {
  const response = await fetch(url, { ...init, redirect: 'manual' }).catch((error: unknown) => {
    throw new Outage(problemOf(error), false)
  })
  if (response.status !== 200) {
    // it is not read, and an unread body keeps its connection
    await response.body?.cancel().catch(() => undefined)
    throw new Outage(`answered ${response.status}`, true)
  }
  const text = await textOf(response)
  const value = objectOf(parsed(text))
  if (value === undefined) throw new Outage('answered no JSON object', true)
  return value
}

const textOf = async ({ body }: Response): Promise<string> => {
  const chunks: Uint8Array[] = []
  let bytes = 0
  try {
    // Safe: a body's chunks are bytes
    for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
      bytes += chunk.byteLength
      if (bytes > MAX_BYTES) break
      chunks.push(chunk)
    }
  } catch (error) {
    throw new Outage(problemOf(error), false)
  }
  if (bytes > MAX_BYTES) throw new Outage('answered more than 1 MB', true)
  return Buffer.concat(chunks).toString('utf8')
}

// The error of JSON.parse quotes what it read
const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

// undici hides the reason in `cause`; of that only a code such as ECONNREFUSED is reported
const problemOf = (error: unknown): string => {
  if (!(error instanceof Error)) return 'cannot be asked'
  if (error.name === 'TimeoutError' || error.name === 'AbortError') return 'did not answer in time'
  const { cause } = error
  const code: unknown = typeof cause === 'object' && cause !== null && 'code' in cause ? cause.code : undefined
  return typeof code === 'string' && /^[A-Z0-9_]+$/.test(code) ? `cannot be asked (${code})` : 'cannot be asked'
}
