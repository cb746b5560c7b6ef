/** The clients of a cluster with their default settings, connected to all nodes, or through a relay to each. */
import { Cluster } from 'ioredis'
import type { RedisStoreOptions } from 'koa-with-auth/stores'
import { createCluster } from 'redis'

const host = '127.0.0.1'

export interface ClusterClient {
  readonly command: RedisStoreOptions['command']
  /** The client itself, and what rate-limiter-flexible needs of it. */
  readonly limiting: { readonly storeClient: unknown; readonly useRedisPackage?: boolean }
  readonly disconnect: () => unknown
}

type Connect = (ports: ReadonlyArray<number>, through?: (port: number) => number) => Promise<ClusterClient>

/** The clients, by the names in tests. */
export const connectors: Readonly<Record<string, Connect>> = {
  'createCluster of node-redis': async (ports, through = (port) => port) => {
    const cluster = createCluster({
      rootNodes: ports.map((port) => ({ socket: { host, port } })),
      nodeAddressMap: (address) => ({ host, port: through(Number(address.split(':')[1])) }),
    })
    cluster.on('error', () => {})
    await cluster.connect()
    return {
      command: (args, key) => cluster.sendCommand(key, false, args),
      limiting: { storeClient: cluster, useRedisPackage: true },
      disconnect: () => cluster.destroy(),
    }
  },
  'Cluster of ioredis': async (ports, through = (port) => port) => {
    const cluster = new Cluster(
      ports.map((port) => ({ host, port })),
      { natMap: (address) => ({ host, port: through(Number(address.split(':')[1])) }) },
    )
    cluster.on('error', () => {})
    await new Promise((resolve) => cluster.once('ready', resolve))
    return {
      command: ([name = '', ...rest]) => cluster.call(name, ...rest),
      limiting: { storeClient: cluster },
      disconnect: () => cluster.disconnect(),
    }
  },
}
