/**
 * Requests as bytes over a socket, for cases that an HTTP client would hide. Send `Connection: close`. The runner of the corpus has the
 * function, because it imports nothing from outside of its folder.
 */
import type { RawAnswer } from '../../data/runner.mjs'

export { sendRaw, type RawAnswer } from '../../data/runner.mjs'

/** All values of a header. */
export const valuesOf = (answer: RawAnswer, name: string): string[] =>
  answer.headers.filter(([n]) => n === name.toLowerCase()).map(([, value]) => value)
