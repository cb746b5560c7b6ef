/**
 * Checks that contestants send the same answers: status, all headers and body. Contestants with different answers are
 * not compared.
 */
import type { RequestListener } from 'node:http'
import { answerOf, type Answered, type Asked, type Headers } from './stub.js'

/** One request that all contestants are asked. */
export interface Question extends Asked {
  readonly name: string
  readonly url: string
  readonly headers: Headers
  readonly status: number
}

// What would differ between two moments
const inWords = ({ status, headers, body }: Answered): string =>
  [
    `${status}`,
    ...Object.entries(headers)
      .map(([name, value]) => `${name}: ${String(value)}`)
      .sort(),
    '',
    body,
  ].join('\n')

/** Throws an error that shows both responses if they differ, or if their status is not the expected one. */
export const expectAlike = async (
  { name, url, headers, status, ...asked }: Question,
  listeners: Readonly<Record<string, RequestListener>>,
): Promise<void> => {
  let first: string | undefined
  for (const [who, listener] of Object.entries(listeners)) {
    const answered = await answerOf(listener, url, headers, asked)
    const text = inWords(answered)
    first ??= text
    if (answered.status === status && text === first) continue
    throw new Error(
      `${name}: contestants answer differently; ${status} was expected of all.\n\n${first}\n\n${who}:\n\n${text}\n`,
    )
  }
}
