/** A world of ceremonies with a clock, keys and a store that can fail, and the laws that hold in it (C-01). */
import * as E from 'fp-ts/lib/Either.js'
import fc from 'fast-check'
import { localPath, type Intent, type Kind, type Proof } from 'koa-with-auth/sign-in'
import { expect } from 'vitest'
import { AuthError, UnavailableError } from 'koa-with-auth'
import type { ceremonies } from '../../../src/sign-in/ceremony.js'

/** Makes the ceremonies of an application: the function of the sources, or a mutant of it. */
export type Make = typeof ceremonies

const LIFETIME = 600_000

interface Answer {
  readonly code: string
  readonly order: string[]
}

const keyOf = (letter: string) => letter.repeat(32)

/** A kind whose answer is right if it knows a secret of the ceremony. */
const kind = (name: string, tries: number, order: () => string[]): Kind<string, { who: string }, Answer> => ({
  name,
  tries,
  lifetime: LIFETIME,
  begin: (_incoming, { secret }, who = 'none') =>
    E.right({ kept: { who }, send: (handle) => ({ body: { handle, code: secret('code'), nonce: secret('nonce') } }) }),
  read: ({ body }) => ({ handle: String(body['handle']), answer: { code: String(body['code']), order: order() } }),
  check: ({ who }, { code }, { secret }) => {
    order().push('check')
    return code === secret('code') ? E.right({ method: 'test', subject: who }) : E.left(AuthError.invalid)
  },
})

const incoming = (body: Readonly<Record<string, unknown>>) => ({
  method: 'POST',
  path: '/',
  query: new URLSearchParams(),
  body,
  principal: undefined,
  address: '127.0.0.1',
})

interface Sent {
  readonly handle: string
  readonly code: string
  readonly nonce: string
}

/** A world of its own. */
export const world = (make: Make) => {
  let now = 1e12
  let isDown = false
  let isOver = false
  let keys = [keyOf('a')]
  const order: string[] = []
  const until = new Map<string, number>()
  const made = make({
    keys: () => keys,
    name: 'shop',
    origin: 'https://shop.example',
    now: () => now,
    ids: {
      release: async () => {},
      use: async (id, lifetime) => {
        order.push('use')
        if (isDown) throw new UnavailableError('down')
        if ((until.get(id) ?? 0) > now) return false
        until.set(id, now + lifetime)
        return true
      },
    },
  })
  const [a, b, code] = [kind('a', 1, () => order), kind('b', 1, () => order), kind('code', 3, () => order)] as const
  const ahead: typeof a = {
    ...a,
    name: 'ahead',
    check: (...given) => {
      const checked = a.check(...given)
      return 'then' in checked || E.isLeft(checked) ? checked : E.right({ ...checked.right, at: now + 60_000 })
    },
  }
  const kinds = [a, b, code, { ...a, name: 'unbound', bound: false }, ahead] as const
  return {
    made,
    kinds,
    order,
    now: () => now,
    tick: (ms: number) => (now += ms),
    down: (is: boolean) => (isDown = is),
    over: (is: boolean) => (isOver = is),
    rotate: (to: string[]) => (keys = to),
    spent: () => until.size,
    stored: () => [...until.keys()],
    begin: async (
      which: number,
      browser: string,
      intent: Intent = 'signIn',
      subject?: string,
      more: { readonly returnTo?: unknown; readonly before?: ReadonlyArray<Proof> } = {},
    ): Promise<Sent> => {
      const given = { incoming: incoming({}), browser, intent, subject, returnTo: '/there', ask: 'who', ...more }
      const sent = await made.begin(kinds[which]!, given)
      if (E.isLeft(sent) || !('body' in sent.right)) throw new Error('not begun')
      return sent.right.body as Sent
    },
    finish: (which: number, browser: string | undefined, sent: Partial<Sent>, subject?: string) =>
      made.finish(kinds[which]!, {
        incoming: incoming(sent),
        browser,
        subject,
        isGoingOn: async () => !isOver,
        isAwaited: () => true,
        isFinishedHere: () => Promise.resolve(false),
        complete: async (finished) => {
          order.push('complete')
          return E.right({ user: undefined, isAccepted: true, finished })
        },
      }),
  }
}

const reasonOf = (ended: E.Either<AuthError, unknown>) =>
  E.isLeft(ended) ? (ended.left.reason ?? ended.left._tag) : 'in'

type Step =
  | { readonly do: 'begin'; readonly kind: number; readonly browser: number; readonly subject: string | undefined }
  | {
      readonly do: 'finish'
      readonly which: number
      readonly kind: number | undefined
      readonly browser: number | undefined
      readonly isRight: boolean
      readonly subject: string | undefined
      readonly times: number
    }
  | { readonly do: 'tick'; readonly by: number }
  | { readonly do: 'down'; readonly is: boolean }
  | { readonly do: 'rotate'; readonly keys: string }

const mostly = <A, B>(usual: A, rarely: fc.Arbitrary<B>) =>
  fc.oneof({ weight: 5, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: rarely })

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('begin' as const),
      kind: fc.nat(2),
      browser: fc.nat(2),
      subject: fc.constantFrom(undefined, 'anna', 'bob'),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('finish' as const),
      which: fc.nat(20),
      kind: mostly(undefined, fc.nat(2)),
      browser: mostly(undefined, fc.nat(2)),
      isRight: mostly(true, fc.boolean()),
      subject: mostly('anna', fc.constantFrom(undefined, 'bob')),
      times: fc.constantFrom(1, 1, 2, 5),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('tick' as const), by: fc.constantFrom(1000, 300_000, LIFETIME) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('down' as const), is: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('rotate' as const), keys: fc.constantFrom('a', 'b', 'ba', 'ab', 'cb') }),
  },
)

/** Each law by its name. It rejects if it does not hold. */
export const ceremonyLaws: Readonly<Record<string, (make: Make) => Promise<void>>> = {
  'once, independent, bound, late, kinds, subject, outage, rotation, secrets: agrees with a model': async (make) => {
    let successes = 0
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const w = world(make)
        let isDown = false
        let keys = 'a'
        const open: Array<
          Sent & {
            kind: number
            browser: number
            subject: string | undefined
            until: number
            key: string
            tries: number
          }
        > = []
        for (const s of steps) {
          if (s.do === 'tick') w.tick(s.by)
          else if (s.do === 'down') w.down((isDown = s.is))
          else if (s.do === 'rotate') w.rotate([...(keys = s.keys)].map(keyOf))
          else if (s.do === 'begin') {
            const before = w.order.length
            const sent = await w.begin(
              s.kind,
              `browser ${s.browser}`,
              s.subject === undefined ? 'signIn' : 'stepUp',
              s.subject,
            )
            expect(w.order.length).toBe(before) // L14
            expect(open.every(({ code, nonce }) => code !== sent.code && nonce !== sent.nonce)).toBe(true) // L15
            open.push({
              ...s,
              ...sent,
              until: w.now() + LIFETIME,
              key: keys[0]!,
              tries: s.kind === 2 ? 3 : 1,
            })
          } else {
            const c = open[s.which % (open.length || 1)]
            if (c === undefined) continue
            const asked = { kind: s.kind ?? c.kind, browser: s.browser ?? c.browser }
            w.order.length = 0
            const sent = { handle: c.handle, code: s.isRight ? c.code : 'wrong' }
            const results = await Promise.all(
              Array.from({ length: s.times }, () => w.finish(asked.kind, `browser ${asked.browser}`, sent, s.subject)),
            )
            const isOpened = asked.kind === c.kind && asked.browser === c.browser && keys.includes(c.key)
            const isInTime = isOpened && w.now() < c.until
            const isTheirs = isInTime && (c.subject === undefined || c.subject === s.subject)
            const checks = w.order.filter((one) => one === 'check').length
            if (!isTheirs) {
              const reason = !isOpened ? 'unknown' : !isInTime ? 'late' : 'anotherUser'
              expect(results.map(reasonOf)).toEqual(results.map(() => reason))
              expect(w.order).toEqual([]) // L3: nothing is spent
            } else if (isDown) {
              expect(results.map(reasonOf)).toEqual(results.map(() => 'unavailable'))
              expect(checks).toBe(0) // L7
            } else {
              expect(checks).toBe(Math.min(s.times, c.tries)) // L1
              const wins = results.filter(E.isRight).length
              successes += wins
              expect(wins).toBe(s.isRight && c.tries > 0 ? 1 : 0)
              // what was finished checks no other answer
              c.tries = wins > 0 ? 0 : c.tries - checks
            }
          }
        }
      }),
      { numRuns: 400 },
    )
    expect(successes).toBeGreaterThan(50)
  },

  'order: use once, then check, then complete; and nothing after a step that fails': async (make) => {
    const w = world(make)
    const first = await w.begin(0, 'mine')
    expect(reasonOf(await w.finish(0, 'mine', { ...first, code: 'wrong' }))).toBe('invalid')
    expect(w.order.splice(0)).toEqual(['use', 'check'])
    expect(reasonOf(await w.finish(0, 'mine', first))).toBe('unknown')
    expect(w.order.splice(0)).toEqual(['use'])
    const second = await w.begin(0, 'mine')
    expect(reasonOf(await w.finish(0, 'mine', second))).toBe('in')
    expect(w.order).toEqual(['use', 'check', 'complete'])
  },

  'late: at the end, not a millisecond later, whatever the store thinks of time': async (make) => {
    const w = world(make)
    const sent = await w.begin(0, 'mine')
    w.tick(LIFETIME)
    expect(reasonOf(await w.finish(0, 'mine', sent))).toBe('late')
    const other = await w.begin(0, 'mine')
    w.tick(LIFETIME - 1)
    expect(reasonOf(await w.finish(0, 'mine', other))).toBe('in')
    // the id is remembered longer than the handle can be opened
    expect(reasonOf(await w.finish(0, 'mine', other))).toBe('unknown')
    const early = await w.begin(0, 'mine')
    expect(reasonOf(await w.finish(0, 'mine', early))).toBe('in')
    w.tick(LIFETIME - 1)
    expect(reasonOf(await w.finish(0, 'mine', early))).toBe('unknown')
  },

  'silence: unknown, forged, foreign and spent are one failure': async (make) => {
    const w = world(make)
    const sent = await w.begin(0, 'mine')
    await w.finish(0, 'mine', sent)
    const failures = await Promise.all([
      w.finish(0, 'mine', { handle: 'AAAA' }),
      w.finish(0, 'mine', { ...sent, handle: `${sent.handle.slice(0, -3)}AAA` }),
      w.finish(0, 'other', sent),
      w.finish(0, undefined, sent),
      w.finish(1, 'mine', sent),
      w.finish(0, 'mine', sent),
    ])
    expect(new Set(failures.map((one) => JSON.stringify(one))).size).toBe(1)
  },

  'a handle has one spelling': async (make) => {
    const w = world(make)
    const { handle, code } = await w.begin(0, 'mine')
    const last = handle.at(-1)!
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const bytes = Buffer.from(handle, 'base64url')
    const sameBytes = [...alphabet]
      .map((one) => handle.slice(0, -1) + one)
      .filter((one) => Buffer.from(one, 'base64url').equals(bytes))
    const others = [
      `${handle}=`,
      ` ${handle}`,
      `${handle} `,
      handle.replaceAll('-', '+').replaceAll('_', '/') + '=',
      ...sameBytes.filter((one) => !one.endsWith(last)),
    ]
    for (const one of others) expect(reasonOf(await w.finish(0, 'mine', { handle: one, code }))).toBe('unknown')
    expect(w.spent()).toBe(0)
    expect(reasonOf(await w.finish(0, 'mine', { handle, code }))).toBe('in')
  },

  'cost: 2,000 beginnings call no store': async (make) => {
    const w = world(make)
    for (let at = 0; at < 2000; at++) await w.begin(at % 3, `browser ${at}`)
    expect([w.order, w.spent()]).toEqual([[], 0])
  },

  'a proof is never of the future, and the return path was fixed at the beginning': async (make) => {
    const w = world(make)
    const sent = await w.begin(0, 'mine')
    const ended = await w.finish(0, 'mine', { ...sent, ...{ returnTo: 'https://evil.example' } })
    expect(E.isRight(ended) && ended.right).toMatchObject({
      returnTo: '/there',
      completed: { finished: { proof: { method: 'test', at: 1e12, subject: 'who' }, intent: 'signIn', before: [] } },
    })
  },

  'link and stepUp: for the user who began, and still signed in': async (make) => {
    for (const intent of ['link', 'stepUp'] as const) {
      const w = world(make)
      const sent = await w.begin(0, 'mine', intent, 'anna')
      for (const other of [undefined, 'bob', '', 'Anna']) {
        expect(reasonOf(await w.finish(0, 'mine', sent, other))).toBe('anotherUser')
      }
      expect(w.spent()).toBe(0)
      expect(reasonOf(await w.finish(0, 'mine', sent, 'anna'))).toBe('in')
    }
  },

  'unbound: any browser finishes a reset and a verification, and no sign-in': async (make) => {
    const w = world(make)
    for (const intent of ['signIn', 'link', 'stepUp'] as const) {
      const sent = await w.begin(3, 'mine', intent, 'anna')
      expect(reasonOf(await w.finish(3, 'mine', sent, 'anna'))).toBe('unknown')
    }
    expect(w.order).toEqual([])
    for (const intent of ['reset', 'verify'] as const) {
      const sent = await w.begin(3, 'mine', intent)
      expect(reasonOf(await w.finish(3, undefined, sent))).toBe('in')
      expect(reasonOf(await w.finish(3, 'mine', sent))).toBe('unknown')
      // of a bound kind it is not good for that
      const bound = await w.begin(0, 'mine', intent)
      expect(reasonOf(await w.finish(0, 'mine', bound))).toBe('unknown')
    }
  },

  'return: whatever was given at the beginning, it is a path of this origin': async (make) => {
    const w = world(make)
    const given = fc.oneof(fc.anything(), fc.string(), fc.constantFrom('//e.example', '/\\e.example', '/basket?x=1'))
    await fc.assert(
      fc.asyncProperty(given, async (returnTo) => {
        const ended = await w.finish(0, 'mine', await w.begin(0, 'mine', 'signIn', undefined, { returnTo }))
        expect(E.isRight(ended) && ended.right.returnTo).toBe(localPath(returnTo))
      }),
      { numRuns: 100 },
    )
    const ended = await w.finish(0, 'mine', await w.begin(0, 'mine', 'signIn', undefined, { returnTo: '//e.example' }))
    expect(ended).toMatchObject({ right: { returnTo: '/' } })
  },

  'proofs: none is of the future, and those of before arrive as they were': async (make) => {
    const w = world(make)
    const before = [{ method: 'password', at: 1e12 - 5000, acr: 'high' }]
    const ended = await w.finish(4, 'mine', await w.begin(4, 'mine', 'signIn', 'anna', { before }))
    expect(ended).toMatchObject({
      right: { completed: { finished: { proof: { at: 1e12 }, before, subject: 'anna' } } },
    })
  },

  'half: one whose sessions were ended is unknown, uses nothing up, and checks nothing': async (make) => {
    const w = world(make)
    const sent = await w.begin(2, 'mine', 'signIn', 'anna', { before: [{ method: 'password', at: 1e12 }] })
    w.over(true)
    expect([reasonOf(await w.finish(2, 'mine', sent)), w.order]).toEqual(['unknown', []])
    w.over(false)
    expect(reasonOf(await w.finish(2, 'mine', sent))).toBe('in')
  },

  'at rest: a copy of the store signs in no user, with the keys of the application, too': async (make) => {
    const w = world(make)
    const sent = await w.begin(0, 'the secret of the browser', 'stepUp', 'anna')
    const hidden = Buffer.from(sent.handle, 'base64url').toString('latin1')
    for (const part of ['anna', 'who', 'there', 'stepUp', 'browser', sent.code]) expect(hidden).not.toContain(part)
    await w.finish(0, 'the secret of the browser', { ...sent, code: 'wrong' }, 'anna')
    const stored = w.stored()
    expect(stored).toHaveLength(1)
    for (const part of [sent.handle, sent.code, sent.nonce, 'anna', 'browser'])
      expect(stored.join()).not.toContain(part)
    const waiting = await w.begin(0, 'the secret of the browser', 'stepUp', 'anna')
    for (const handle of [...stored, waiting.handle]) {
      for (const browser of [undefined, '', 'anna', ...stored]) {
        expect(reasonOf(await w.finish(0, browser, { ...waiting, handle }, 'anna'))).toBe('unknown')
      }
    }
    expect(reasonOf(await w.finish(0, 'the secret of the browser', waiting, 'anna'))).toBe('in')
  },

  'secrets: for another purpose, kind or browser they differ': async (make) => {
    const w = world(make)
    const all = []
    for (const which of [0, 1]) for (const browser of ['one', 'two']) all.push(await w.begin(which, browser))
    const secrets = all.flatMap(({ code, nonce }) => [code, nonce])
    expect(new Set(secrets).size).toBe(secrets.length)
    for (const one of secrets) expect(one).toMatch(/^[\w-]{43}$/)
  },
}
