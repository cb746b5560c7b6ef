import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after } from 'node:test'

/** Serves it on a free port until the tests end. The function that it returns sends a request to a path below /api. */
export const serve = async (app: { listen: (port: number, host: string) => Server }) => {
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  after(() => server.close().closeAllConnections())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/api`
  return (path: string, init: RequestInit = {}) => fetch(url + path, init)
}
