/** The comparisons: each measures its contestants, and returns its rows. */
import type { RequestListener } from 'node:http'
import { fastifyApps, honoApps } from './otherApps.js'
import { expectAlike } from './alike.js'
import { asking, askingHono, basic, bearer, listenerOfFastify } from './contestants.js'
import { koaApps, koaLevels, koaLists, koaRoutes, signedToken } from './koaApps.js'
import { added, addedRatio, microseconds, race, ratio, type Contestant, type Pace, type Times } from './paired.js'
import { row, type Row, type Section } from './Section.js'
import { medianOf, type Estimate } from './statistics.js'
import { headersOf, type Headers } from './stub.js'

const good = bearer('supersecret')
const named = basic('anna:supersecret')

/** Compared with other ways to authenticate on Koa. */
export const others = async (pace: Pace): Promise<Section> => {
  const jwt = bearer(signedToken)
  const hand = koaApps['by hand']()
  const keyed = headersOf({ 'X-Key-3': 'supersecret' })
  const alike: Readonly<Record<string, RequestListener>> = {
    'by hand': hand,
    'by hand, in middleware': koaApps['by hand, in middleware'](),
    ours: koaApps.ours(),
    naive: koaApps.naive(),
  }
  const lists = { 'list by hand': koaLists['by hand'](3), 'naive list': koaLists.naive(3) }
  await expectAlike({ name: 'bearer', url: '/x', headers: good, status: 200 }, alike)
  await expectAlike({ name: 'list', url: '/x', headers: keyed, status: 200 }, lists)
  const times = await race(
    [
      ...Object.entries(alike).map(([name, listener]) => asking(name, listener, good)),
      ...Object.entries(lists).map(([name, listener]) => asking(name, listener, keyed)),
      asking('by hand, again', hand, good),
      asking('bare', koaApps.bare(), good),
      asking('passport', koaApps.passport(), good),
    ],
    pace,
  )
  const [verifying, koaJwt] = [koaApps['ours, JWT'](), koaApps['koa-jwt']()]
  const verified = await race(
    [asking('ours', verifying, jwt), asking('koa-jwt', koaJwt, jwt), asking('koa-jwt, again', koaJwt, jwt)],
    // One verification takes as long as a hundred comparisons
    { ...pace, batch: 5 },
  )
  const versus = (name: string, mine: string, theirs: string): Row => row(name, ratio(times, mine, theirs), 'times')
  const control = ratio(times, 'by hand, again', 'by hand')
  return {
    title: 'Beside other ways to authenticate on Koa',
    control,
    rows: [
      row('control: by hand twice', control, 'times', {
        note: `${microseconds(times, 'by hand').toFixed(1)} us a request`,
      }),
      versus('by hand in middleware, beside by hand in the handler', 'by hand, in middleware', 'by hand'),
      versus('a naive chain of fp-ts combinators, beside by hand', 'naive', 'by hand'),
      versus('a naive list of 3, beside by hand', 'naive list', 'list by hand'),
      row('added to bare Koa: by hand', added(times, 'by hand', 'bare'), 'us'),
      row('added to bare Koa: ours', added(times, 'ours', 'bare'), 'us'),
      row('added to bare Koa: koa-passport', added(times, 'passport', 'bare'), 'us'),
      row('ours as a part of koa-passport', addedRatio(times, ['ours', 'bare'], ['passport', 'bare']), 'times', {
        target: 1 / 20,
      }),
      row('JWT, beside koa-jwt, the same verifier', ratio(verified, 'ours', 'koa-jwt'), 'times', {
        control: ratio(verified, 'koa-jwt, again', 'koa-jwt'),
      }),
    ],
  }
}

/** Compared with other frameworks: what each adds to its own bare application. */
export const peers = async (pace: Pace): Promise<Section> => {
  const bare = koaApps.bare()
  const ours = koaApps.ours()
  const contestants: Contestant[] = [
    asking('koa bare', bare, good),
    asking('koa ours', ours, good),
    asking('koa ours, again', ours, good),
  ]
  for (const [name, make] of Object.entries(honoApps)) {
    contestants.push(askingHono(name, make(), name.includes('basic') ? named : good))
  }
  for (const [name, make] of Object.entries(fastifyApps)) {
    contestants.push(asking(name, listenerOfFastify(await make()), name.includes('basic') ? named : good))
  }
  const times = await race(contestants, pace)
  const adds = (name: string, mine: string, its: string): Row => row(name, added(times, mine, its), 'us')
  const against = (other: string, its: string): Row =>
    row(`ours as a part of ${other}`, addedRatio(times, ['koa ours', 'koa bare'], [other, its]), 'times', { target: 1 })
  const control = addedRatio(times, ['koa ours, again', 'koa bare'], ['koa ours', 'koa bare'])
  return {
    title: 'What authentication adds to the bare framework, in process',
    control,
    rows: [
      adds('koa-with-auth, bearer', 'koa ours', 'koa bare'),
      adds('hono bearerAuth', 'hono bearer', 'hono bare'),
      adds('hono basicAuth', 'hono basic', 'hono bare'),
      adds('hono some(basic, bearer)', 'hono some', 'hono bare'),
      adds('@fastify/bearer-auth', 'fastify bearer', 'fastify bare'),
      adds('@fastify/basic-auth', 'fastify basic', 'fastify bare'),
      adds('@fastify/auth([basic, bearer])', 'fastify auth', 'fastify bare'),
      against('hono bearer', 'hono bare'),
      against('fastify bearer', 'fastify bare'),
      row('control: ours twice', control, 'times'),
    ],
  }
}

// The cost of a request that is matched against thousands of regular expressions depends on where the application is in
// memory: two equal ones differ by a tenth. So several are measured, each at another place.
const growthByRoutes = async (pace: Pace, routes: number): Promise<ReadonlyArray<Row>> => {
  const slow = routes >= 1000
  const builds = slow ? 12 : Math.min(4, Math.ceil(pace.rounds / 15))
  const each = {
    rounds: Math.ceil(pace.rounds / builds),
    batch: slow ? Math.ceil(pace.batch / 20) : pace.batch,
  }
  const names = ['bare', 'by hand', 'ours', 'by hand, again'] as const
  const times: Times[] = []
  const alike = { 'by hand': koaRoutes['by hand'](10), ours: koaRoutes.ours(10) }
  await expectAlike({ name: 'one of many routes', url: '/r1', headers: good, status: 200 }, alike)
  for (let build = 0; build < builds; build++) {
    const inTurn = names.map((_, at) => names[(at + build) % names.length] ?? 'bare')
    const apps = inTurn.map((name) => ({ name, app: koaRoutes[name === 'by hand, again' ? 'by hand' : name](routes) }))
    const contestants = apps.map(({ name, app }) => asking(name, app, good, '/r1'))
    times.push(await race(contestants, each))
  }
  const median = (name: string, unit: Row['unit'], of: (times: Times) => Estimate): Row =>
    row(`${routes} routes: ${name}`, medianOf(times.map((one) => of(one).value)), unit)
  return [
    median('added by hand', 'us', (one) => added(one, 'by hand', 'bare')),
    median('added by the guard', 'us', (one) => added(one, 'ours', 'bare')),
    median('the guard beside by hand', 'times', (one) => ratio(one, 'ours', 'by hand')),
    median('control: by hand beside by hand', 'times', (one) => ratio(one, 'by hand, again', 'by hand')),
  ]
}

/** How the cost grows with levels, alternatives and routes. */
export const growth = async (pace: Pace, sizes: ReadonlyArray<number>): Promise<ReadonlyArray<Section>> => {
  const keyedAt = (length: number) => headersOf({ [`X-Key-${length}`]: 'supersecret' })
  const raced = async (
    label: string,
    apps: typeof koaLevels,
    sizes: ReadonlyArray<number>,
    headersAt: (size: number) => Headers,
  ): Promise<ReadonlyArray<Row>> => {
    for (const size of sizes) {
      const both = { 'by hand': apps['by hand'](size), ours: apps.ours(size) }
      await expectAlike({ name: `${size} ${label}`, url: '/x', headers: headersAt(size), status: 200 }, both)
    }
    const smallest = apps['by hand'](1)
    const times = await race(
      [
        ...['1 by hand', '1 by hand, again'].map((name) => asking(name, smallest, headersAt(1))),
        ...sizes.flatMap((size) => [
          ...(size === 1 ? [] : [asking(`${size} by hand`, apps['by hand'](size), headersAt(size))]),
          asking(`${size}`, apps.ours(size), headersAt(size)),
        ]),
      ],
      pace,
    )
    return [
      ...sizes.map((size) => row(`${size} ${label}`, ratio(times, `${size}`, `${size} by hand`), 'times')),
      row('control: by hand twice', ratio(times, '1 by hand, again', '1 by hand'), 'times'),
    ]
  }
  const byLevels = await raced('levels', koaLevels, [1, 2, 4, 8], () => good)
  const byLength = await raced('alternatives', koaLists, [1, 2, 4, 8, 16], keyedAt)
  const byRoutes: Row[] = []
  for (const routes of sizes) byRoutes.push(...(await growthByRoutes(pace, routes)))
  return [
    { title: 'Nested routers that all guard, beside the check by hand', rows: byLevels },
    { title: 'Alternatives, the last lets in, beside the check by hand', rows: byLength },
    { title: 'Routes of an application', rows: byRoutes },
  ]
}
