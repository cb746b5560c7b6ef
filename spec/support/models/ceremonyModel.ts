/** A world of ceremonies with a clock, keys and a store that can fail (C-01). */
import * as E from 'fp-ts/lib/Either.js'
import { type Intent, type Kind, type Proof } from 'koa-with-auth/sign-in'
import { AuthError, UnavailableError } from 'koa-with-auth'
import { ceremonies } from '../../../src/sign-in/ceremony.js'

export const LIFETIME = 600_000

interface Answer {
  readonly code: string
  readonly order: string[]
}

export const keyOf = (letter: string) => letter.repeat(32)

/** A kind whose answer is right if it knows a secret of the ceremony; it can also be `down` and `thrown`, which are outages. */
const kind = (name: string, tries: number, order: () => string[]): Kind<string, { who: string }, Answer> => ({
  name,
  tries,
  lifetime: LIFETIME,
  begin: (_incoming, { secret }, who = 'none') =>
    E.right({ kept: { who }, send: (handle) => ({ body: { handle, code: secret('code'), nonce: secret('nonce') } }) }),
  read: ({ body }) => ({ handle: String(body['handle']), answer: { code: String(body['code']), order: order() } }),
  check: ({ who }, { code }, { secret }) => {
    order().push('check')
    if (code === 'thrown') throw new UnavailableError('down')
    if (code === 'down') return E.left(AuthError.unavailable())
    return code === secret('code') ? E.right({ method: 'test', subject: who }) : E.left(AuthError.invalid)
  },
})

const incoming = (body: Readonly<Record<string, unknown>>, address = '127.0.0.1') => ({
  method: 'POST',
  path: '/',
  query: new URLSearchParams(),
  body,
  principal: undefined,
  address,
})

export interface Sent {
  readonly handle: string
  readonly code: string
  readonly nonce: string
}

/** A world of its own. */
export const world = () => {
  let now = 1e12
  let off = 0
  let isDown = false
  let isOver = false
  let keys = [keyOf('a')]
  const order: string[] = []
  const until = new Map<string, number>()
  const made = ceremonies({
    keys: () => keys,
    name: 'shop',
    origin: 'https://shop.example',
    now: () => now + off,
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
    /** How far the clock of the process is ahead of that of the store. */
    ahead: (ms: number) => (off = ms),
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
    finish: (which: number, browser: string | undefined, sent: Partial<Sent>, subject?: string, address?: string) =>
      made.finish(kinds[which]!, {
        incoming: incoming(sent, address),
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
