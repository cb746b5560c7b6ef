/** Fifty clients that work on a site, others that must be refused, and the responses to each. */
import { setTimeout as pause } from 'node:timers/promises'
import { siteClient, type Reply, type SiteClient } from './sessionSiteClient.js'

/** As a user; as a user who writes; public; with a cookie that must be refused; and public without a cookie. */
type Asked = 'guarded' | 'write' | 'public' | 'wrong' | 'without'

export interface Entry extends Reply {
  readonly asked: Asked
  /** In the time of `performance.now()`. */
  readonly begun: number
  readonly ended: number
  /** Whether the response is about another user. */
  readonly isOfAnother: boolean
}

export type Load = Awaited<ReturnType<typeof startLoad>>

const size = 50
// Between two requests of a client, in milliseconds
const rest = 150

type Step = readonly [asked: Asked, method: string, path: string]

const steps: Readonly<Record<'user' | 'wrong' | 'without', ReadonlyArray<Step>>> = {
  user: [
    ['guarded', 'GET', '/me'],
    ['write', 'POST', '/notes'],
    ['public', 'GET', '/open'],
  ],
  wrong: [
    ['wrong', 'GET', '/me'],
    ['wrong', 'POST', '/notes'],
  ],
  without: [['without', 'GET', '/open']],
}

// A machine that does other work can take longer than the site's time limit
const signIn = async (client: SiteClient, name: string): Promise<void> => {
  for (let tries = 0; tries < 20; tries++) {
    if ((await client.send('POST', `/login/${name}`)).status !== 503) return
  }
}

// Of a session that was ended, of a session that never existed, with another signature, and without one
const wrongCookies = async (port: number): Promise<string[]> => {
  const client = siteClient(port)
  await signIn(client, 'mallory')
  const cookies = client.cookies()
  await client.send('POST', '/logout')
  client.close()
  return [
    cookies,
    cookies.replace(/session=./, (one) => (one.endsWith('A') ? 'session=B' : 'session=A')),
    cookies.replace(/~.*/, `~.${'A'.repeat(22)}`),
    cookies.replace(/~.*/, `; session.sig=${'A'.repeat(27)}`),
  ]
}

/** Signs fifty users in, and lets them and the others work until `stop`. */
export const startLoad = async (port: number) => {
  const entries: Entry[] = []
  let isOver = false
  const work = async (client: SiteClient, turns: ReadonlyArray<Step>, name: string): Promise<void> => {
    await pause(Math.random() * rest)
    for (let turn = 0; !isOver; turn++) {
      const [asked, method, path] = turns[turn % turns.length] ?? steps.user[0]!
      const begun = performance.now()
      const reply = await client.send(method, path)
      const isOfAnother = path === '/me' && reply.status === 200 && !reply.body.includes(`"${name}"`)
      entries.push({ ...reply, asked, begun, ended: performance.now(), isOfAnother })
      await pause(rest)
    }
    client.close()
  }
  const wrong = (await wrongCookies(port)).map((cookies) => siteClient(port, cookies))
  const users = Array.from({ length: size }, () => siteClient(port))
  await Promise.all(users.map((user, index) => signIn(user, `user-${index}`)))
  const working = [
    ...users.map((user, index) => work(user, steps.user, `user-${index}`)),
    ...wrong.map((client) => work(client, steps.wrong, 'anonymous')),
    work(siteClient(port), steps.without, 'anonymous'),
  ]
  return {
    entries,
    stop: async () => {
      isOver = true
      await Promise.all(working)
    },
  }
}

const well: Readonly<Record<Asked, number>> = { guarded: 200, write: 201, public: 200, wrong: 401, without: 200 }

/** The expected response while there is no fault. */
export const isWell = ({ asked, status }: Entry): boolean => status === well[asked]

/** How often each response was given: `{ 'guarded 503': 120 }`. */
export const summary = (entries: ReadonlyArray<Entry>): Record<string, number> => {
  const counts: Record<string, number> = {}
  for (const { asked, status } of entries) counts[`${asked} ${status}`] = (counts[`${asked} ${status}`] ?? 0) + 1
  return counts
}

/** The longest time of a response, in milliseconds. */
export const longest = (entries: ReadonlyArray<Entry>): number => Math.max(0, ...entries.map((one) => one.milliseconds))
