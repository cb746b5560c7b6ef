/** What is compared: each measurement races its contestants and tells its rows. */
import type { RequestListener } from 'node:http'
import { fastifyApps, honoApps } from './otherApps.js'
import { koaApps, koaLevels, koaLists, koaRoutes, koaSessions, sessionCookie, signedToken } from './koaApps.js'
import {
  added,
  addedRatio,
  microseconds,
  overBuilds,
  race,
  ratio,
  type Contestant,
  type Pace,
  type Times,
} from './paired.js'
import type { Row, Section } from './Section.js'
import type { Estimate } from './statistics.js'
import { answerOf, ask, headersOf, type Headers } from './stub.js'

const good = headersOf({ Authorization: 'Bearer supersecret' })
const bad = headersOf({ Authorization: 'Bearer wrong' })
const basic = headersOf({ Authorization: `Basic ${Buffer.from('anna:supersecret').toString('base64')}` })

const asking = (name: string, listener: RequestListener, headers: Headers, url = '/x'): Contestant => ({
  name,
  run: () => ask(listener, url, headers),
})

const expectAlike = async (url: string, headers: Headers, status: number, ...listeners: RequestListener[]) => {
  const answers = await Promise.all(listeners.map((listener) => answerOf(listener, url, headers)))
  const [first] = answers.map((answer) => JSON.stringify({ ...answer, headers: Object.entries(answer.headers).sort() }))
  for (const answer of answers) {
    const text = JSON.stringify({ ...answer, headers: Object.entries(answer.headers).sort() })
    if (answer.status !== status || text !== first)
      throw new Error(`the contestants answer differently: ${text}, ${first}`)
  }
}

/** Beside the check written by hand, on Koa. */
export const koa = async (pace: Pace): Promise<Section> => {
  const apps = Object.fromEntries(Object.entries(koaApps).map(([name, make]) => [name, make()])) as {
    readonly [K in keyof typeof koaApps]: RequestListener
  }
  const lists = [1, 3, 8].map((length) => ({ length, hand: koaLists['by hand'](length), ours: koaLists.ours(length) }))
  const naiveList = koaLists.naive(3)
  const sessions = { hand: koaSessions['by hand'](), ours: koaSessions.ours() }
  const signedIn = headersOf({ Cookie: sessionCookie })
  const jwt = headersOf({ Authorization: `Bearer ${signedToken}` })
  const keyed = (at: number) => headersOf({ [`X-Key-${at}`]: 'supersecret' })

  for (const headers of [good, bad]) {
    await expectAlike('/x', headers, headers === good ? 200 : 401, apps['by hand'], apps.ours, apps['ours, async'])
  }
  await expectAlike('/x', basic, 200, apps['by hand, Basic'], apps['ours, Basic'])
  await expectAlike('/x', signedIn, 200, sessions.hand, sessions.ours)
  for (const { length, hand, ours } of lists) await expectAlike('/x', keyed(length), 200, hand, ours)

  const times = await race(
    [
      ...Object.entries(apps).map(([name, listener]) =>
        asking(
          name,
          listener,
          name.includes('JWT') || name === 'koa-jwt' ? jwt : name.includes('Basic') ? basic : good,
        ),
      ),
      asking('by hand, again', apps['by hand'], good),
      asking('rejected by hand', apps['by hand'], bad),
      asking('rejected', apps.ours, bad),
      asking('rejected late by hand', apps['by hand, async'], bad),
      asking('rejected late', apps['ours, async'], bad),
      ...lists.flatMap(({ length, hand, ours }) => [
        asking(`last of ${length} by hand`, hand, keyed(length)),
        asking(`last of ${length}`, ours, keyed(length)),
      ]),
      asking('first of 8 by hand', lists[2]!.hand, keyed(1)),
      asking('first of 8', lists[2]!.ours, keyed(1)),
      asking('naive list of 3', naiveList, keyed(3)),
      asking('session by hand', sessions.hand, signedIn),
      asking('session', sessions.ours, signedIn),
    ],
    pace,
  )
  const versus = (name: string, mine: string, theirs: string, target?: number): Row => ({
    name,
    value: ratio(times, mine, theirs),
    unit: 'times',
    ...(target !== undefined && { target }),
  })
  return {
    title: 'Beside the check written by hand',
    control: ratio(times, 'by hand, again', 'by hand'),
    rows: [
      {
        ...versus('control: the same contestant twice', 'by hand, again', 'by hand'),
        note: `${microseconds(times, 'by hand').toFixed(1)} us a request`,
      },
      versus('one bearer authenticator', 'ours', 'by hand', 1.05),
      versus('the same, by hand in middleware', 'by hand, in middleware', 'by hand'),
      versus('one, asynchronous hook', 'ours, async', 'by hand, async'),
      versus('the same, by hand with the same time limit', 'ours, async', 'by hand, async, in time', 1.03),
      versus('first of a list of 8', 'first of 8', 'first of 8 by hand'),
      versus('third of a list of 3', 'last of 3', 'last of 3 by hand', 1.08),
      versus('eighth of a list of 8', 'last of 8', 'last of 8 by hand'),
      versus('Basic', 'ours, Basic', 'by hand, Basic', 1.06),
      versus('session', 'session', 'session by hand', 1.08),
      versus('rejected with 401', 'rejected', 'rejected by hand', 1.15),
      versus('the same, asynchronous hook', 'rejected late', 'rejected late by hand'),
      versus('a naive chain of fp-ts combinators', 'naive', 'by hand'),
      versus('a naive list of 3', 'naive list of 3', 'last of 3 by hand'),
      { name: 'added to bare Koa: ours', value: added(times, 'ours', 'bare'), unit: 'us' },
      { name: 'added to bare Koa: koa-passport', value: added(times, 'passport', 'bare'), unit: 'us' },
      {
        name: 'ours as a part of koa-passport',
        value: addedRatio(times, ['ours', 'bare'], ['passport', 'bare']),
        unit: 'times',
        target: 1 / 20,
      },
      versus('JWT, beside koa-jwt', 'ours, JWT', 'koa-jwt'),
    ],
  }
}

/** Beside other frameworks: what each adds to its own bare application. */
export const peers = async (pace: Pace): Promise<Section> => {
  const bare = koaApps.bare()
  const ours = koaApps.ours()
  const contestants: Contestant[] = [
    asking('koa bare', bare, good),
    asking('koa ours', ours, good),
    asking('koa ours, again', ours, good),
  ]
  for (const [name, make] of Object.entries(honoApps)) {
    const app = make()
    const headers = name.includes('basic') ? basic : good
    contestants.push({
      name,
      run: async () => {
        const response = await app.fetch(new Request('http://localhost:3000/x', { headers }))
        if (response.status !== 200) throw new Error(`${name} answers ${response.status}`)
        return response.text()
      },
    })
  }
  for (const [name, make] of Object.entries(fastifyApps)) {
    const app = await make()
    contestants.push(
      asking(name, (request, response) => app.routing(request, response), name.includes('basic') ? basic : good),
    )
  }
  const times = await race(contestants, pace)
  const row = (name: string, mine: string, its: string): Row => ({ name, value: added(times, mine, its), unit: 'us' })
  const against = (other: string, its: string): Row => ({
    name: `ours as a part of ${other}`,
    value: addedRatio(times, ['koa ours', 'koa bare'], [other, its]),
    unit: 'times',
    target: 1,
  })
  return {
    title: 'What authentication adds to the bare framework, in process',
    control: addedRatio(times, ['koa ours, again', 'koa bare'], ['koa ours', 'koa bare']),
    rows: [
      row('koa-with-auth, bearer', 'koa ours', 'koa bare'),
      row('hono bearerAuth', 'hono bearer', 'hono bare'),
      row('hono basicAuth', 'hono basic', 'hono bare'),
      row('hono some(basic, bearer)', 'hono some', 'hono bare'),
      row('@fastify/bearer-auth', 'fastify bearer', 'fastify bare'),
      row('@fastify/basic-auth', 'fastify basic', 'fastify bare'),
      row('@fastify/auth([basic, bearer])', 'fastify auth', 'fastify bare'),
      against('hono bearer', 'hono bare'),
      against('fastify bearer', 'fastify bare'),
      {
        name: 'control: ours twice',
        value: addedRatio(times, ['koa ours, again', 'koa bare'], ['koa ours', 'koa bare']),
        unit: 'times',
      },
    ],
  }
}

// Where an application lies in memory decides what a request costs that is matched against thousands of regular
// expressions: two equal ones differ by a tenth. So there are several, each at another place, and what is reported is reported them.
const growthByRoutes = async (pace: Pace, routes: number): Promise<ReadonlyArray<Row>> => {
  const slow = routes >= 1000
  const builds = slow ? 12 : Math.min(4, Math.ceil(pace.rounds / 15))
  const each = {
    rounds: Math.ceil(pace.rounds / builds),
    batch: slow ? Math.ceil(pace.batch / 20) : pace.batch,
  }
  const names = ['bare', 'by hand', 'ours', 'by hand, again'] as const
  const times: Times[] = []
  for (let build = 0; build < builds; build++) {
    const inTurn = names.map((_, at) => names[(at + build) % names.length] ?? 'bare')
    const apps = inTurn.map((name) => ({ name, app: koaRoutes[name === 'by hand, again' ? 'by hand' : name](routes) }))
    times.push(
      await race(
        apps.map(({ name, app }) => asking(name, app, good, '/r1')),
        each,
      ),
    )
  }
  const row = (name: string, unit: Row['unit'], of: (times: Times) => Estimate): Row => ({
    name: `${routes} routes: ${name}`,
    value: overBuilds(times.map((one) => of(one).value)),
    unit,
  })
  return [
    row('added by hand', 'us', (one) => added(one, 'by hand', 'bare')),
    row('added by the guard', 'us', (one) => added(one, 'ours', 'bare')),
    row('the guard beside by hand', 'times', (one) => ratio(one, 'ours', 'by hand')),
    row('control: by hand beside by hand', 'times', (one) => ratio(one, 'by hand, again', 'by hand')),
  ]
}

/** How the cost grows with levels, alternatives and routes. */
export const growth = async (pace: Pace, sizes: ReadonlyArray<number>): Promise<ReadonlyArray<Section>> => {
  const depths = [1, 2, 4, 8]
  const lengths = [1, 2, 4, 8, 16]
  const [nested, listed] = [koaLevels['by hand'](1), koaLists['by hand'](1)]
  const keyed = headersOf({ 'X-Key-1': 'supersecret' })
  const byLevels = await race(
    [
      ...['1 by hand', '1 by hand, again'].map((name) => asking(name, nested, good)),
      ...depths.flatMap((depth) => [
        ...(depth === 1 ? [] : [asking(`${depth} by hand`, koaLevels['by hand'](depth), good)]),
        asking(`${depth}`, koaLevels.ours(depth), good),
      ]),
    ],
    pace,
  )
  const byLength = await race(
    [
      ...['1 by hand', '1 by hand, again'].map((name) => asking(name, listed, keyed)),
      ...lengths.flatMap((length) => {
        const headers = headersOf({ [`X-Key-${length}`]: 'supersecret' })
        return [
          ...(length === 1 ? [] : [asking(`${length} by hand`, koaLists['by hand'](length), headers)]),
          asking(`${length}`, koaLists.ours(length), headers),
        ]
      }),
    ],
    pace,
  )
  const byRoutes: Row[] = []
  for (const routes of sizes) byRoutes.push(...(await growthByRoutes(pace, routes)))
  const rows = (times: Times, counts: ReadonlyArray<number>, label: string): ReadonlyArray<Row> =>
    counts.map((count) => ({
      name: `${count} ${label}`,
      value: ratio(times, `${count}`, `${count} by hand`),
      unit: 'times',
    }))
  const control = (times: Times): Row => ({
    name: 'control: by hand twice',
    value: ratio(times, '1 by hand, again', '1 by hand'),
    unit: 'times',
  })
  return [
    {
      title: 'Nested routers that all guard, beside the check by hand',
      rows: [...rows(byLevels, depths, 'levels'), control(byLevels)],
    },
    {
      title: 'Alternatives, the last lets in, beside the check by hand',
      rows: [...rows(byLength, lengths, 'alternatives'), control(byLength)],
    },
    { title: 'Routes of an application', rows: byRoutes },
  ]
}
