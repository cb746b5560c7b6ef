/** Two processes of one site: an id is spent in one of them, and one of two answers of a ceremony is in. */
import { randomBytes, randomUUID } from 'node:crypto'
import { softwareAuthenticator } from 'koa-with-auth/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { jsonClient, type JsonClient } from '../support/servers/jsonClient.js'
import { optionsFrom, origin } from '../support/sites/passkeySite.js'
import { describeWithRedis, redisServer } from '../support/servers/redisServer.js'
import { buildSite, startProgram, type Site } from '../support/sites/sessionSite.js'
import { sqliteFile } from '../support/stores/sessionStores.js'

const program = 'spec/support/sites/signInProcess'
const clients = ['spec/support/servers/jsonClient', 'spec/support/servers/cookieJar']
const built = buildSite([program, 'spec/support/sites/passkeySite', ...clients])
afterAll(built.remove)

const statuses = (replies: ReadonlyArray<{ status: number }>) => replies.map(({ status }) => status).sort()

const describeTwo = (env: () => Readonly<Record<string, string>>): void => {
  let sites: Array<Pick<Site, 'port' | 'stop'>> = []
  beforeAll(async () => {
    const all = { KEYS: randomBytes(32).toString('hex'), ...env() }
    sites = [await startProgram(built.folder, program, all), await startProgram(built.folder, program, all)]
  })
  afterAll(async () => {
    for (const site of sites) await site.stop()
  })
  const clientOf = (at: number): JsonClient => jsonClient(() => `http://127.0.0.1:${sites[at]!.port}`)
  /** The same browser at both processes. */
  const browser = () => {
    const [one, other] = [clientOf(0), clientOf(1)]
    /** Gives the cookies of one to the other. */
    const share = (from = one, to = other): void => {
      to.cookies.clear()
      for (const [name, value] of from.cookies) to.cookies.set(name, value)
    }
    return { one, other, both: [one, other], share }
  }
  const signedIn = async () => {
    const replies = await Promise.all([clientOf(0), clientOf(1)].map((one) => one.get('/calls')))
    return replies.reduce((sum, { body }) => sum + (body as { signedIn: number }).signedIn, 0)
  }
  const asked = async (client: JsonClient) => {
    const address = `${randomUUID()}@shop.example`
    const { body } = await client.post('/sign-in/mail', { address })
    const code = async () => ((await client.get(`/mails/${address}`)).body as { code?: string }).code
    await expect.poll(code).toBeDefined()
    return { handle: (body as { handle: string }).handle, code: await code() }
  }

  it('C-03 of twenty callers of both, one uses an id', async () => {
    for (let round = 0; round < 5; round += 1) {
      const id = randomUUID()
      const calls = Array.from({ length: 20 }, (_, at) => clientOf(at % 2).post(`/use/${id}`))
      const won = (await Promise.all(calls)).filter(({ body }) => (body as { is: boolean }).is)
      expect(won).toHaveLength(1)
    }
  })

  it('C-01 of ten answers of one ceremony at both, one is in', async () => {
    const { one, both, share } = browser()
    const before = await signedIn()
    const answer = await asked(one)
    share()
    const replies = await Promise.all(
      Array.from({ length: 10 }, (_, at) => both[at % 2]!.post('/sign-in/mail/code', answer)),
    )
    // a code may be tried three times, and is right once; the others are too late, or lead on in the same browser
    for (const status of statuses(replies)) expect([200, 400]).toContain(status)
    expect((await signedIn()) - before).toBe(1)
  })

  it('C-01 what begins in one process is finished in the other, once', async () => {
    const { one, other, share } = browser()
    const answer = await asked(one)
    share()
    expect((await other.post('/sign-in/mail/code', answer)).status).toBe(200)
    // it comes again to the first, in the browser that is signed in, and leads on
    expect([200, 400]).toContain((await one.post('/sign-in/mail/code', answer)).status)
    expect((await other.get('/me')).status).toBe(200)
  })

  it('C-04 three tries of both processes together', async () => {
    const { one, other, share } = browser()
    const answer = await asked(one)
    share()
    const wrong = { ...answer, code: answer.code === '00000000' ? '11111111' : '00000000' }
    const tried = []
    for (const client of [one, other, one]) tried.push(await client.post('/sign-in/mail/code', wrong))
    expect(statuses(tried)).toEqual([403, 403, 403])
    expect((await other.post('/sign-in/mail/code', answer)).status).toBe(400)
  })

  it('W-02 W-06 a passkey that both register at once is one record, and one of two uses is in', async () => {
    const { one, both, share } = browser()
    const phone = softwareAuthenticator({ origin, synced: false })
    const user = `u${randomUUID().slice(0, 8)}`
    expect((await one.post(`/sign-in/password/${user}`)).status).toBe(204)
    const created = phone.create(await optionsFrom({ browser: one, phone }, '/passkeys/options'))
    share()
    const made = await Promise.all(both.map((client) => client.post('/passkeys', created)))
    expect(statuses(made)).toEqual([201, 400])
    expect((await one.get('/passkeys')).body).toHaveLength(1)
    for (const answers of [1, 2]) {
      const before = await signedIn()
      const got: object[] = []
      for (let at = 0; at < answers; at += 1) {
        got.push(
          phone.get(await optionsFrom({ browser: one, phone }, '/sign-in/passkey/options'), { counter: 10 * answers }),
        )
      }
      share()
      // the same answer twice; then two answers with one counter
      const sent = await Promise.all(both.map((client, at) => client.post('/sign-in/passkey', got[at] ?? got[0])))
      expect(statuses(sent)).toEqual([200, 400])
      expect((await signedIn()) - before).toBe(1)
    }
  })
}

describeWithRedis('two processes on one Redis', () => {
  const redis = redisServer()
  describeTwo(() => ({ REDIS_PORT: String(redis().port) }))
})

describe('two processes on one SQLite file', () => {
  const url = sqliteFile()
  describeTwo(() => ({ SQLITE_URL: url() }))
})
