/** What `npm start` reads from the environment, and its messages about invalid values. */
import { randomBytes } from 'node:crypto'
import { BlockList, isIPv6 } from 'node:net'

export interface Settings {
  /** PORT (3000). With 0 the system chooses one. */
  readonly port: number
  /** HOST (127.0.0.1). */
  readonly host: string
  /**
   * KEYS: signing keys of sessions, separated by commas. The default is one random key, so a restart signs everyone
   * out.
   */
  readonly keys: string[]
  /** DATABASE_URL (`file:example.db`), created if it does not exist. */
  readonly databaseUrl: string
  /** IP_ALLOW_LIST, see ../ipAllowList.ts. */
  readonly allowedAddresses: string
  /**
   * REDIS_URL (`redis://...`). Then sessions, API keys and issued tokens are in Redis instead of the database, and
   * wrong passwords are counted there, so several processes with the same KEYS serve one site.
   */
  readonly redisUrl: string
}

/** Reads the settings. An Error names the invalid variable; its message does not contain the keys. */
export const settingsIn = (env: Readonly<Record<string, string | undefined>>): Settings => {
  const setting = (name: string, otherwise: string): string => env[name]?.trim() || otherwise
  const port = setting('PORT', '3000')
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65535) {
    throw new Error(`PORT must be a number from 0 to 65535, not ${JSON.stringify(port)}`)
  }
  const keys = setting('KEYS', randomBytes(32).toString('hex')).split(',')
  if (keys.some((key) => key.length < 32)) {
    throw new Error('KEYS must be keys of at least 32 characters each, separated by commas')
  }
  return {
    port: Number(port),
    host: setting('HOST', '127.0.0.1'),
    keys,
    databaseUrl: setting('DATABASE_URL', 'file:example.db'),
    allowedAddresses: setting('IP_ALLOW_LIST', '127.0.0.1,::1'),
    redisUrl: setting('REDIS_URL', ''),
  }
}

// BlockList is Node's class for any set of addresses
const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)
loopback.addAddress('::1', 'ipv6')

/** Whether only this machine can reach an address that a server listens on. */
export const isLoopback = (address: string): boolean => loopback.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
