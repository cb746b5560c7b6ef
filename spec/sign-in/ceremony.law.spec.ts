/** The laws of a ceremony (C-01): random walks over tabs, browsers, kinds, clocks, outages and keys, beside a model. */
import * as E from 'fp-ts/lib/Either.js'
import fc from 'fast-check'
import { localPath } from 'koa-with-auth/sign-in'
import { describe, expect, it } from 'vitest'
import { type AuthError } from 'koa-with-auth'
import { recordsOf } from '../support/runs/eventRecords.js'
import { keyOf, LIFETIME, world, type Sent } from '../support/models/ceremonyModel.js'

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

// O-16: keys are rotated in them
describe('C-01 the laws of a ceremony', () => {
  it('once, independent, bound, late, kinds, subject, outage, rotation, secrets: agrees with a model', async () => {
    let successes = 0
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const w = world()
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
  })

  it('order: use once, then check, then complete; and nothing after a step that fails', async () => {
    const w = world()
    const first = await w.begin(0, 'mine')
    expect(reasonOf(await w.finish(0, 'mine', { ...first, code: 'wrong' }))).toBe('invalid')
    expect(w.order.splice(0)).toEqual(['use', 'check'])
    expect(reasonOf(await w.finish(0, 'mine', first))).toBe('unknown')
    expect(w.order.splice(0)).toEqual(['use'])
    const second = await w.begin(0, 'mine')
    expect(reasonOf(await w.finish(0, 'mine', second))).toBe('in')
    expect(w.order).toEqual(['use', 'check', 'complete'])
  })

  it('late: at the end, not a millisecond later, whatever the store thinks of time', async () => {
    const w = world()
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
  })

  it.each([
    ['another process is five minutes ahead', 300_000, 400_000, 0],
    ['another process is five minutes behind', -300_000, 400_000, 0],
    ['the clock was set back by 59 seconds and a lifetime', 0, 2 * LIFETIME + 59_000, -LIFETIME - 59_001],
    ['the clock was set back by half a lifetime', 0, LIFETIME + 120_000, -LIFETIME / 2],
  ])('once: also if %s', async (_how, ahead, later, back) => {
    const w = world()
    const sent = await w.begin(0, 'mine')
    w.ahead(ahead)
    expect(reasonOf(await w.finish(0, 'mine', { ...sent, code: 'wrong' }))).toBe('invalid')
    w.tick(later)
    w.ahead(back)
    expect(reasonOf(await w.finish(0, 'mine', sent))).toBe('unknown')
  })

  it('silence: unknown, forged, foreign and spent are one failure', async () => {
    const w = world()
    const records = recordsOf('ceremony')
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
    // in the records, a spent one alone is known
    expect(records.map(({ event, ...of }) => [event, 'reason' in of && of.reason])).toEqual([
      ...['begun', 'finished'].map((event) => [event, false]),
      ...Array<[string, string]>(5).fill(['refused', 'unknown']),
      ['refused', 'used'],
    ])
  })

  it('a handle has one spelling', async () => {
    const w = world()
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
  })

  it('link and stepUp: for the user who began, and still signed in', async () => {
    for (const intent of ['link', 'stepUp'] as const) {
      const w = world()
      const sent = await w.begin(0, 'mine', intent, 'anna')
      for (const other of [undefined, 'bob', '', 'Anna']) {
        expect(reasonOf(await w.finish(0, 'mine', sent, other))).toBe('anotherUser')
      }
      expect(w.spent()).toBe(0)
      expect(reasonOf(await w.finish(0, 'mine', sent, 'anna'))).toBe('in')
    }
  })

  it('unbound: any browser finishes a reset and a verification, and no sign-in', async () => {
    const w = world()
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
  })

  it('return: whatever was given at the beginning, it is a path of this origin', async () => {
    const w = world()
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
  })

  it('proofs: none is of the future, those of before arrive as they were, and so does the return path', async () => {
    const w = world()
    const before = [{ method: 'password', at: 1e12 - 5000, acr: 'high' }]
    const ended = await w.finish(4, 'mine', {
      ...(await w.begin(4, 'mine', 'signIn', 'anna', { before })),
      ...{ returnTo: 'https://evil.example' },
    })
    expect(ended).toMatchObject({
      right: {
        returnTo: '/there',
        completed: {
          finished: { proof: { method: 'test', at: 1e12, subject: 'who' }, intent: 'signIn', before, subject: 'anna' },
        },
      },
    })
  })

  it('half: one whose sessions were ended is unknown, uses nothing up, and checks nothing', async () => {
    const w = world()
    const sent = await w.begin(2, 'mine', 'signIn', 'anna', { before: [{ method: 'password', at: 1e12 }] })
    w.over(true)
    expect([reasonOf(await w.finish(2, 'mine', sent)), w.order]).toEqual(['unknown', []])
    w.over(false)
    expect(reasonOf(await w.finish(2, 'mine', sent))).toBe('in')
  })

  it('at rest: a copy of the store signs in no user, with the keys of the application, too', async () => {
    const w = world()
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
  })

  it('pages: what is concealed for a browser is revealed to it alone, after a rotation of the keys, too', () => {
    const w = world()
    const hidden = w.made.conceal('one', 'the page')
    w.rotate([keyOf('b'), keyOf('a')])
    expect(w.made.reveal('one', hidden)).toBe('the page')
    const refused = [w.made.reveal('two', hidden), w.made.reveal('one', `${hidden}=`), w.made.reveal('one', 'AAAA')]
    w.rotate([keyOf('b')])
    expect([...refused, w.made.reveal('one', hidden)]).toEqual(Array(4).fill(undefined))
    expect(Buffer.from(hidden, 'base64url').toString('latin1')).not.toContain('page')
  })

  it('secrets: for another purpose, kind or browser they differ', async () => {
    const w = world()
    const all = []
    for (const which of [0, 1]) for (const browser of ['one', 'two']) all.push(await w.begin(which, browser))
    const secrets = all.flatMap(({ code, nonce }) => [code, nonce])
    expect(new Set(secrets).size).toBe(secrets.length)
    for (const one of secrets) expect(one).toMatch(/^[\w-]{43}$/)
  })
})

describe('C-01 the return path', () => {
  const bad: ReadonlyArray<unknown> = [
    ...['https://e.example', '//e.example', '/\\e.example', '/\t/e.example', '\\\\e.example', '/%2f%2fe.example'],
    ...['/%5ce.example', '/%5C', '/ /e', 'javascript:alert(1)', '', '/a\r\nSet-Cookie: x', '/%0d%0a', '/..//e.example'],
    ...['/%2F/e', '/.//e.example', '/%2e%2e//e.example', 'http:e.example', 'https:/e', '/\u2028/e', '///e'],
    ...['/ä', '/%00', '/%1f', '/%7f'],
    ...[undefined, null, {}, ['/a'], 7, `/${'a'.repeat(2000)}`, 'basket', '?a', '#a', '/a\u0000', '/\u00a0'],
  ]
  it.each(bad.map((one) => [one]))('%j is /', (one) => {
    expect(localPath(one)).toBe('/')
  })

  it.each(['/', '/a/b?c=%2F&d=//x', '/a#f', '/a%20b', `/${'a'.repeat(1999)}`, '/a?x=/%5c'])('%s stays', (one) => {
    expect(localPath(one)).toBe(one)
  })

  it('is of this origin for the URL parser, whatever it is made of', () => {
    const piece = fc.constantFrom(
      ...['/', '\\', '.', '..', '%2e', '%2f', '%5C', '\t', ':', '@', 'e.example', '?', '#', 'a', ';'],
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
        const path = localPath(`/${pieces.join('')}`)
        const base = 'https://shop.example'
        expect(new URL(path, base).origin).toBe(base)
        expect(new URL(new URL(path, base).pathname, base).origin).toBe(base)
      }),
    )
  })
})
