/**
 * Over loopback, with a load generator: servers in processes of their own, asked in turn. It shows what is left of the
 * differences where sockets and HTTP parsing cost what they cost.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { getRequestListener } from '@hono/node-server'
import autocannon from 'autocannon'
import { koaApps } from './koaApps.js'
import type { Row, Section } from './measurements.js'
import { fastifyApps, honoApps } from './otherApps.js'
import { estimate, median } from './statistics.js'

const names = [
  'bare',
  'by hand',
  'ours',
  'passport',
  'hono bare',
  'hono bearer',
  'fastify bare',
  'fastify bearer',
] as const

const serverOf = async (name: string): Promise<Server> => {
  const koa = Object.entries(koaApps).find(([known]) => known === name)?.[1]
  if (koa !== undefined) return createServer(koa())
  const hono = Object.entries(honoApps).find(([known]) => known === name)?.[1]
  if (hono !== undefined) return createServer(getRequestListener(hono().fetch))
  const fastify = Object.entries(fastifyApps).find(([known]) => known === name)?.[1]
  if (fastify === undefined) throw new Error(`no contestant is called ${name}`)
  const app = await fastify()
  return createServer((request, response) => app.routing(request, response))
}

const self = fileURLToPath(import.meta.url)

const started = (name: string): Promise<{ readonly child: ChildProcess; readonly url: string }> =>
  new Promise((resolve, reject) => {
    const child = fork(self, [name])
    child.once('error', reject)
    child.once('message', (port) => resolve({ child, url: `http://127.0.0.1:${String(port)}/x` }))
  })

const perSecond = async (url: string, seconds: number): Promise<number> => {
  const headers = { Authorization: 'Bearer supersecret' }
  const { requests, non2xx, errors } = await autocannon({ url, connections: 20, duration: seconds, headers })
  if (non2xx > 0 || errors > 0) throw new Error(`${url}: ${non2xx} refused, ${errors} failed`)
  return requests.average
}

export const loopback = async (rounds: number, seconds: number): Promise<Section> => {
  const figures = new Map(names.map((name) => [name, [] as number[]]))
  for (let round = 0; round < rounds; round++) {
    for (const name of names) {
      const { child, url } = await started(name)
      await perSecond(url, 1)
      figures.get(name)?.push(await perSecond(url, seconds))
      child.kill()
    }
  }
  const row = (name: (typeof names)[number]): Row => {
    const values = figures.get(name) ?? []
    const value = estimate(values.length, (some) => median(some.map((round) => values[round] ?? Number.NaN)))
    return { name, value, unit: 'req/s' }
  }
  return { title: 'Over loopback: requests per second of one process, 20 connections', rows: names.map(row) }
}

if (process.argv[1] === self) {
  const server = await serverOf(process.argv[2] ?? '')
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
}
