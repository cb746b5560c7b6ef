/** Values for mistakes in configuration, and their messages. */

export class Strategy {
  authenticate(): boolean {
    return true
  }
}
export function* generator() {
  yield true
}
export async function* asyncGenerator() {
  yield Promise.resolve(true)
}

/** A value that no message may print. */
export const secret = 'sup3rs3cr3t'

/** Safe: a caller without types could write this. */
export const untyped = (value: unknown) => value as never

/** The message of the TypeError that `f` throws. */
export const messageOf = (f: () => unknown): string => {
  try {
    f()
  } catch (error) {
    if (error instanceof TypeError) return error.message
    throw error
  }
  throw new Error('nothing was refused')
}
