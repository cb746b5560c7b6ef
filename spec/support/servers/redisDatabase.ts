/**
 * A database of the one Redis of a run, for a suite that neither stops its server nor counts all of its commands. Those
 * start their own: `redisServer`.
 */
import { duringSuite } from '../runs/duringSuite.js'
import { portVariable } from '../runs/redisOfRun.js'
import { sendTo, startRedis, type RedisServer } from './redisServer.js'

/** Where a client connects to. */
export type RedisDatabase = Pick<RedisServer, 'port' | 'url' | 'send'>

// A spec that another runner starts has no server of a run
const ownPort = async (): Promise<number> => {
  const { port } = await startRedis()
  process.env[portVariable] = String(port)
  return port
}

/** An empty database while the surrounding suite runs. Use it inside of hooks and tests. */
export const redisDatabase = (): (() => RedisDatabase) =>
  duringSuite(
    async () => {
      const known = process.env[portVariable]
      const port = known === undefined ? await ownPort() : Number(known)
      // The number of this database: the first one counts them
      const number = Number((await sendTo(port, ['INCR', 'databases'])).slice(1))
      const send = (...args: string[]) => sendTo(port, args, number)
      return { port, url: `redis://127.0.0.1:${port}/${number}`, send }
    },
    ({ send }) => send('FLUSHDB'),
  )
