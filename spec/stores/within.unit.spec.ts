/** An outage of a store says why, once, to whoever runs the process. */
import { MessageChannel } from 'node:worker_threads'
import { on } from 'koa-with-auth/events'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { within } from '../../src/stores/within.js'
import { stoppedClock } from '../support/runs/clock.js'

const warnings: Array<readonly [string, unknown]> = []
beforeEach(() => {
  warnings.length = 0
  vi.spyOn(process, 'emitWarning').mockImplementation(
    (text: unknown, type?: unknown) => void warnings.push([String(text), type]),
  )
})
afterEach(() => {
  vi.unstubAllEnvs()
  vi.restoreAllMocks()
})

const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:6379'), { code: 'ECONNREFUSED' })
const misused = new TypeError('name.toUpperCase is not a function')

describe('a store that fails', () => {
  it.each([
    ['', refused, 'Error ECONNREFUSED: connect ECONNREFUSED 127.0.0.1:6379'],
    ['', misused, 'TypeError: name.toUpperCase is not a function'],
    ['', 'a string', 'not an Error'],
    ['production', refused, 'Error ECONNREFUSED'],
    ['production', misused, 'TypeError'],
  ])('warns once, with NODE_ENV "%s" and %s', async (env, error, words) => {
    vi.stubEnv('NODE_ENV', env)
    const ask = within('sessions', 1000)

    for (let time = 0; time < 3; time++) await expect(ask(() => Promise.reject(error))).rejects.toThrow('session store')
    const text = `the session store failed: ${words}. Requests that need it are answered with 503`
    expect(warnings).toEqual([[text, 'StoreWarning']])
  })

  it('warns for each store that fails', async () => {
    for (const store of ['api-keys', 'passkeys'] as const) {
      await expect(within(store, 1000)(() => Promise.reject(refused))).rejects.toThrow('the store of')
    }
    expect(warnings.map(([one]) => one.split(' failed')[0])).toEqual(['the store of API keys', 'the store of passkeys'])
  })
})

describe('a store that fails in several ways', () => {
  const reply = (message: string) => Object.assign(new Error(message), { name: 'ErrorReply' })
  const lasting = (...errors: ReadonlyArray<unknown>) => {
    const causes: unknown[] = []
    const ask = within('sessions', 1000)
    onTestFinished(on('store-outage', (record) => void (record.event === 'begun' && causes.push(record.cause))))
    const fail = async (error: unknown) => {
      await ask(() => Promise.reject(error)).catch(() => {})
      await ask(() => Promise.resolve())
    }
    return {
      causes,
      fail,
      all: async () => {
        for (const error of errors) await fail(error)
      },
    }
  }

  it('warns once for each word, at most once a minute', async () => {
    vi.stubEnv('NODE_ENV', 'production')
    const clock = stoppedClock()
    const [oom, readonly] = [reply("OOM command not allowed when used memory > 'maxmemory'."), reply('READONLY no')]
    const { fail } = lasting()
    const words = () => warnings.map(([text]) => /failed: (.*?)\. Requests/.exec(text)?.[1])
    for (const error of [refused, refused, oom]) await fail(error)
    expect(words()).toStrictEqual(['Error ECONNREFUSED'])
    clock.move(60_000)
    for (const error of [refused, oom, readonly, oom]) await fail(error)
    expect(words()).toStrictEqual(['Error ECONNREFUSED', 'OOM, ErrorReply'])
    clock.move(60_000)
    await fail(readonly)
    expect(words()).toStrictEqual(['Error ECONNREFUSED', 'OOM, ErrorReply', 'READONLY, ErrorReply'])
  })

  it('reports the cause of each outage as one word', async () => {
    const nested = new Error('Failed query: select text', { cause: Object.assign(new Error('no'), { code: '42P01' }) })
    const { causes, all } = lasting(
      refused,
      reply('READONLY You cannot write'),
      Object.assign(new Error('SQLITE_FULL: disk'), { code: 'SQLITE_FULL' }),
      nested,
      Object.assign(new Error('no'), { code: 'value of a user' }),
      misused,
      'no error',
    )
    await all()
    expect(causes).toStrictEqual(['ECONNREFUSED', 'READONLY', 'SQLITE_FULL', '42P01', 'Error', 'TypeError', 'Error'])
  })
})

it('a silent store warns once', async () => {
  const ask = within('sessions', 5)
  for (let time = 0; time < 2; time++) await expect(ask(() => new Promise(() => {}))).rejects.toThrow('within 5 ms')
  const text = 'the session store did not answer within 5 ms. Requests that need it are answered with 503'
  expect(warnings).toEqual([[text, 'StoreWarning']])
})

it('a store that answers warns of nothing', async () => {
  expect(await within('sessions', 1000)(async () => 7)).toBe(7)
  expect(warnings).toEqual([])
})

it('an answer and a failure end the time limit', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const ask = within('sessions', 1000)
  for (const answer of [Promise.resolve(7), Promise.reject(refused)]) await ask(() => answer).catch(() => {})
  expect(vi.getTimerCount()).toBe(0)
})

it('an answer that throws where it is asked for its prototype is a failure', async () => {
  const odd = new Proxy({}, { getPrototypeOf: thrown })
  await expect(within('sessions', 1000)(async () => odd)).rejects.toThrow('the session store failed')
})

it('K-05 an answer that came while this process was busy is no silence', async () => {
  // Timers that are due run next, before messages are read
  await new Promise((resolve) => setImmediate(resolve))
  const { port1, port2 } = new MessageChannel()
  // The answer is there, but this thread reads it late
  const answer = within('sessions', 20)(() => new Promise((resolve) => port2.once('message', resolve)))
  port1.postMessage('text')
  const begun = performance.now()
  while (performance.now() - begun < 100);
  expect(await answer).toBe('text')
  port1.close()
  expect(warnings).toEqual([])
})

describe('a store that returns without a promise', () => {
  const ask = within('api-keys', 1000)

  it('is answered without a promise', () => {
    expect(ask((digest: string) => digest.length, 'abc')).toBe(3)
  })

  it.each([
    ['throws', () => thrown()],
    ['returns an Error', () => refused],
  ])('is down if it %s', async (_what, answer) => {
    const thrown: unknown = await Promise.resolve(ask(answer, 'key')).catch((error: unknown) => error)
    expect(thrown).toMatchObject({ name: 'StoreUnavailable', cause: refused })
  })
})

const thrown = (): never => {
  throw refused
}
