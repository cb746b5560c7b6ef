/**
 * The one PostgreSQL and the one MariaDB of a run. They are started when a suite first asks for one: the global setup only listens for
 * that, because most runs of single files need none.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { startSql, type Sql, type SqlServer } from '../servers/sqlServer.js'

const variable = 'KOA_WITH_AUTH_SQL'

const started = new Map<string, Promise<SqlServer>>()

const portOf = async (kind: Sql): Promise<number> => {
  const server = started.get(kind) ?? startSql(kind)
  started.set(kind, server)
  return (await server).port
}

const close = async (): Promise<void> => {
  for (const server of started.values()) await server.then((one) => one.close()).catch(() => {})
}

// Vitest runs it once for each project, in one process
let isListening = false

/** The global setup of a run. */
export const setup = async (): Promise<(() => Promise<void>) | undefined> => {
  if (isListening) return undefined
  isListening = true
  const server = createServer((request, response) => {
    portOf(request.url === '/postgres' ? 'postgres' : 'mariadb').then(
      (port) => response.end(String(port)),
      (error: unknown) => response.writeHead(500).end(String(error)),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  // Safe: it listens on a port
  process.env[variable] = String((server.address() as AddressInfo).port)
  return async () => {
    server.close()
    await close()
  }
}

/** The port of the database of this run. A spec that another runner starts has one of its own. */
export const sqlPort = async (kind: Sql): Promise<number> => {
  const known = process.env[variable]
  if (known === undefined) return portOf(kind)
  const answer = await fetch(`http://127.0.0.1:${known}/${kind}`)
  const text = await answer.text()
  if (!answer.ok) throw new Error(text)
  return Number(text)
}
