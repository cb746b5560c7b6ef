/**
 * Fetches a JSON object from a provider: with a time limit, a size limit, and without following redirects.
 *
 * Any problem is an `Outage`. Its message names the kind of problem, and contains nothing that was sent or received.
 */
import type { Json } from './claims.js'
import { objectOf } from './compact.js'

/** The error for a provider that does not answer as it should. */
export class Outage extends Error {
  override readonly name = 'Outage'
  /** Whether there was an answer, although a wrong one. */
  readonly isAnswer: boolean
  constructor(problem: string, isAnswer: boolean) {
    super(problem)
    this.isAnswer = isAnswer
  }
}

const MAX_BYTES = 1024 * 1024

/** Fetches an object. Rejects with an `Outage` for anything but a 200 with a JSON object. */
export const fetchJson = async (url: string, init: RequestInit): Promise<Json> => {
  const response = await fetch(url, { ...init, redirect: 'manual' }).catch((error: unknown) => {
    throw new Outage(problemOf(error), false)
  })
  if (response.status !== 200) {
    // an unread body would keep its connection
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

// The error of JSON.parse would quote the text
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
