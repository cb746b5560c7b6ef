/** `ctx.session.maxAge` of koa-session does not decide how long a session lasts: assigning it throws, and says what does. */
import { expect, it } from 'vitest'
import { anna, expectSignedIn, keptFor, sessionsApp, signedInApp, setCookies } from '../support/sites/sessionsApp.js'
import { stoppedClock } from '../support/runs/clock.js'

const assignments: ReadonlyArray<readonly [what: string, assign: (ctx: { session: unknown }) => unknown]> = [
  ['milliseconds', (ctx) => Object.assign(ctx.session as object, { maxAge: 1000 })],
  ["'session'", (ctx) => Object.assign(ctx.session as object, { maxAge: 'session' })],
  ['null', (ctx) => Object.assign(ctx.session as object, { maxAge: null })],
  [
    'the present value',
    (ctx) => Object.assign(ctx.session as object, { maxAge: Reflect.get(ctx.session as object, 'maxAge') }),
  ],
  ['a new session that has one', (ctx) => (ctx.session = { basket: 'pear', maxAge: 1000 })],
  ['what koa-session itself keeps of it', (ctx) => (ctx.session = { basket: 'pear', _maxAge: 1000 })],
  ["what koa-session itself keeps of 'session'", (ctx) => (ctx.session = { basket: 'pear', _session: true })],
  [
    'the options of the request',
    (ctx) => Object.assign(Reflect.get(ctx, 'sessionOptions') as object, { maxAge: 1000 }),
  ],
]

it.each(assignments)('assigning %s throws, names the fix, and changes nothing', async (_what, assign) => {
  const thrown: unknown[] = []
  const { store, one } = await signedInApp(undefined, {
    acts: {
      '/remember': (ctx) => {
        try {
          assign(ctx as never)
        } catch (error) {
          thrown.push(error)
          throw error
        }
      },
    },
  })
  const before = store.asked.length
  const answer = await one.post('/remember')
  expect([answer.status, setCookies(answer)]).toEqual([500, []])
  expect(thrown).toHaveLength(1)
  expect(thrown[0]).toBeInstanceOf(TypeError)
  expect(String(thrown[0])).toMatch(/ctx\.session\.maxAge.*logIn\(ctx, user, \{ idle, absolute \}\)/)
  expect(store.asked.slice(before).filter((method) => method !== 'get')).toEqual([])
  await expectSignedIn(one, anna)
})

it('an operation that catches the error keeps its session, and the length of it', async () => {
  const { one } = await signedInApp(undefined, {
    idle: 1000,
    acts: {
      '/remember': (ctx) => {
        try {
          Object.assign(ctx['session'] as object, { maxAge: 999_999 })
        } catch {
          ctx.body = String(Reflect.get(ctx['session'] as object, 'maxAge'))
        }
      },
    },
  })
  expect((await one.post('/remember')).body).toBe(1000)
})

it('logIn(ctx, user, { idle }) decides how long the cookie lasts', async () => {
  const { visitor } = await sessionsApp(undefined, {
    acts: { '/for-a-minute': (ctx, { logIn }) => logIn(ctx, anna, { idle: 60_000 }) },
  })
  const one = visitor()
  stoppedClock()
  // whole seconds
  expect(Math.abs(keptFor(await one.post('/for-a-minute')) - 60_000)).toBeLessThanOrEqual(1000)
  // the next one lasts as long as others
  expect(Math.abs(keptFor(await one.post('/login')) - 86_400_000)).toBeLessThanOrEqual(1000)
  await expectSignedIn(one, anna)
})
