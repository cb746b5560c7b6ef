/**
 * Counts the round trips of a program to its servers. Relays hold every reply until no more requests come. So all
 * requests that came meanwhile, on any connection, were sent at the same time.
 */
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

// Replies are passed on after this many milliseconds without a request
const silence = 25

interface RoundTrips {
  /** The port of the relay to a server. */
  readonly through: (port: number) => number
  /** The number of round trips of `act`, if nothing else is under way. */
  readonly of: (ask: () => Promise<unknown>) => Promise<number>
  readonly close: () => void
}

/** Opens a relay for each port of the loopback address. */
export const roundTrips = async (ports: ReadonlyArray<number>): Promise<RoundTrips> => {
  const sockets = new Set<Socket>()
  const servers: Server[] = []
  const relays = new Map<number, number>()
  let held: (() => void)[] = []
  let isAsked = false
  let trips = 0
  let timer: NodeJS.Timeout | undefined
  const later = (): void => {
    clearTimeout(timer)
    timer = setTimeout(() => {
      if (isAsked && held.length > 0) {
        trips++
        isAsked = false
      }
      const passing = held
      held = []
      for (const pass of passing) pass()
    }, silence)
  }
  const paired = (one: Socket, other: Socket): void => {
    sockets.add(one)
    one
      .on('error', () => {})
      .on('close', () => {
        sockets.delete(one)
        other.destroy()
      })
  }
  for (const port of ports) {
    const server = createServer((client) => {
      const upstream = connect(port, '127.0.0.1')
      paired(client, upstream)
      paired(upstream, client)
      client.on('data', (chunk) => {
        isAsked = true
        later()
        upstream.write(chunk)
      })
      upstream.on('data', (chunk) => {
        held.push(() => client.write(chunk))
        later()
      })
    })
    servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    relays.set(port, (server.address() as AddressInfo).port)
  }
  return {
    through: (port) => relays.get(port) ?? port,
    of: async (ask) => {
      for (let seen = -1; seen !== trips; await pause(silence * 4)) seen = trips
      trips = 0
      await ask()
      return trips
    },
    close: () => {
      clearTimeout(timer)
      for (const socket of sockets) socket.destroy()
      for (const server of servers) server.close()
    },
  }
}
