/** The one Redis of a run: the global setup starts it, and the workers inherit its port. */
import { redisPath, startRedis } from '../servers/redisServer.js'

/** The environment variable that has its port. */
export const portVariable = 'KOA_WITH_AUTH_REDIS'

// Vitest runs it once for each project, in one process
let isStarting = false

/** The global setup of a run. It starts nothing without a redis-server on the PATH. */
export const setup = async (): Promise<(() => Promise<void>) | undefined> => {
  if (isStarting || redisPath(process.env) === undefined) return undefined
  isStarting = true
  const { port, close } = await startRedis()
  process.env[portVariable] = String(port)
  return close
}
