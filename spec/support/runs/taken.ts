/** Takes what arrives, such as a mail. */
import { setTimeout as pause } from 'node:timers/promises'

/** Takes the first of a list, which it waits for. */
export const taken = async <A>(list: A[]): Promise<A> => {
  for (let at = 0; at < 24_000; at++) {
    if (list.length > 0) return list.shift()!
    await pause(5)
  }
  throw new Error('nothing came')
}
