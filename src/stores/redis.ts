/**
 * What the stores in Redis or Valkey share: how a command is sent, and how what a client returns is read. A store needs one function
 * that sends a command, so any client fits.
 */
import * as is from '../core/checks.js'
import { checkOptions } from '../core/options.js'

/** How commands are sent. */
interface RedisOptions {
  /** Sends a command and its arguments. `key` is the key of the command, which clients of a cluster need. */
  readonly command: (args: string[], key: string) => Promise<unknown>
  /** The prefix of all keys. Default: one for each kind of store. */
  readonly prefix?: string | undefined
}

/** A store whose changes are scripts, so each happens as a whole or not at all. For that, all keys are in one slot of a cluster. */
export interface RedisScriptOptions extends RedisOptions {
  /** The prefix of all keys. For a cluster, it must contain a part in braces, as the default does. */
  readonly prefix?: string | undefined
}

type Resolved = RedisOptions & { readonly prefix: string }

export const redisOptionsOf = (caller: string, options: RedisOptions, prefix: string): Resolved => ({
  prefix,
  ...checkOptions(caller, options, { command: is.hook(2), prefix: is.maybe(is.string) }),
})

/** Runs scripts by their names; of a change, whether it was made. */
export const redisScripts = <Name extends string>(
  scripts: Readonly<Record<Name, string>>,
  { command, prefix }: Resolved,
) => {
  const run = (name: Name, keys: ReadonlyArray<string>, ...args: string[]): Promise<unknown> =>
    command(['EVAL', scripts[name], String(keys.length), ...keys, ...args], keys[0] ?? prefix)
  const change = async (...call: Parameters<typeof run>): Promise<boolean> => Number(await run(...call)) === 1
  return { run, change }
}

/** A hash as arguments, each value as JSON; without those that are left out. */
export const hashOf = (fields: object): string[] =>
  Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : [name, JSON.stringify(value)]))

/** Reads what a client returned; `wrong` throws a TypeError for what the store never wrote. Clients can be set up to return buffers. */
export const redisAnswers = (caller: string) => {
  const wrong = (): never => {
    throw new TypeError(`${caller}({ command }): it resolved to a value that this store never wrote`)
  }
  return {
    wrong,
    asString: (value: unknown): string =>
      typeof value === 'string' ? value : Buffer.isBuffer(value) ? value.toString() : wrong(),
    isNothing: (value: unknown): value is null | undefined | false =>
      value === null || value === undefined || value === false,
  }
}
