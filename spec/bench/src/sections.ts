/** The sections by name, and how long each one measures, in full or with `--quick`. */
import { allocations } from './allocations.js'
import { credentials } from './credentials.js'
import { events } from './events.js'
import { footprint } from './footprint.js'
import { keys } from './keys.js'
import { kept } from './kept.js'
import { koa } from './koa.js'
import { objects } from './objects.js'
import { others } from './others.js'
import { promises } from './promises.js'
import { secrets } from './secrets.js'
import { sessions } from './sessions.js'
import { sockets } from './sockets.js'
import { start } from './start.js'
import type { Section } from './Section.js'
import { streams } from './streams.js'
import { tail } from './tail.js'
import { timing } from './timing.js'
import { tokens } from './tokens.js'

type Measure = (quick: boolean) => Promise<ReadonlyArray<Section>>

// V8 has compiled all of a request with a session after some thousands; before, the first rounds measure that
const short = { rounds: 30, batch: 40, warmUp: 8000 }
const pace = (quick: boolean, rounds: number, batch: number) => (quick ? short : { rounds, batch })

export const sections: Readonly<Record<string, Measure>> = {
  koa: async (quick) => [await koa(quick ? 2 : 6, { rounds: quick ? 60 : 120, batch: 50, clock: 'processor' })],
  credentials: async (quick) => [
    await credentials(quick ? 2 : 6, { rounds: quick ? 60 : 120, batch: 50, clock: 'processor' }),
  ],
  others: async (quick) => [await others({ ...pace(quick, 200, 50), clock: 'processor' })],
  tokens: (quick) => tokens(quick ? { rounds: 12, batch: 4 } : { rounds: 80, batch: 12 }),
  secrets: async (quick) => [await secrets(quick ? { rounds: 9, batch: 40 } : { rounds: 180, batch: 100 })],
  events: async (quick) => [await events(pace(quick, 150, 100))],
  objects: async (quick) => [await objects(pace(quick, 150, 100))],
  sessions: async (quick) => [await sessions(pace(quick, 200, 50), quick ? 3 : 5)],
  keys: async (quick) => [await keys({ ...pace(quick, 200, 50), clock: 'processor' })],
  routes: async (quick) => [await footprint(quick ? 2 : 6)],
  allocations: async (quick) => [await (quick ? allocations(3, 8) : allocations(5, 30))],
  promises: async () => [await promises()],
  streams: async (quick) => [await streams(quick ? 10_000 : 100_000, 3)],
  kept: async (quick) => [await kept(quick ? 10_000 : 100_000, 3)],
  start: async (quick) => [await start(quick ? 3 : 20)],
  timing: async (quick) => [timing(quick ? 200_000 : 1_000_000)],
  sockets: async (quick) => [
    await sockets(quick ? { generations: 1, rounds: 4, requests: 600 } : { generations: 6, rounds: 8, requests: 1500 }),
  ],
  tail: async (quick) => [await tail(quick ? { rounds: 2, seconds: 1 } : { rounds: 7, seconds: 4 })],
}

/** What `--only` takes. */
export const sectionNames: ReadonlyArray<string> = Object.keys(sections)
