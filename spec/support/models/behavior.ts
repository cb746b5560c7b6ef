/**
 * One application for one test, on a real socket. It reports its answers, and the principals that its handlers saw.
 */
import { STATUS_CODES, type IncomingHttpHeaders } from 'node:http'
import Router from '@koa/router'
import { either as E, option as O, taskEither as TE } from 'fp-ts'
import Koa from 'koa'
import { httpBearer, withAuth, type Authenticator, type AuthenticatorLike, type Guard } from 'koa-with-auth'
import { expect } from 'vitest'
import { parsed } from '../servers/jsonClient.js'
import { exchange, listen } from '../servers/server.js'

export interface Sending {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string | string[]>>
  readonly body?: string
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The lines of `WWW-Authenticate`, as sent. */
  readonly challenges: ReadonlyArray<string>
  /** Parsed if it is JSON. */
  readonly body: unknown
  /** The principals that the handlers saw during the request. If it is empty, no handler ran. */
  readonly seen: ReadonlyArray<unknown>
}

/** Records the principal, and answers `{ ok: true }`. */
export type Answering = (ctx: { readonly request: object; body: unknown }) => void

export interface Running {
  readonly url: string
  readonly port: number
  /** What Koa's `error` event reported, in order. */
  readonly errors: ReadonlyArray<unknown>
  readonly ask: (path?: string, sending?: Sending) => Promise<Answer>
}

/** Serves what `build` makes of a new application until the test has finished. */
export const running = async (build: (app: Koa, answering: Answering) => void): Promise<Running> => {
  const app = new Koa()
  const seen: unknown[] = []
  build(app, (ctx) => {
    seen.push(Reflect.get(ctx.request, 'auth'))
    ctx.body = { ok: true }
  })
  const { url, port, errors } = await listen(app)
  const ask = async (path = '/x', sending: Sending = {}): Promise<Answer> => {
    const before = seen.length
    const answer = await askPort(port, path, sending)
    return { ...answer, seen: seen.slice(before) }
  }
  return { url, port, errors, ask }
}

/** One guarded operation, `/x` with every method, below whatever is mounted first. */
export const operation = <P>(guard: Guard<P>, above: (app: Koa) => void = () => {}): Promise<Running> =>
  running((app, answering) => {
    above(app)
    app.use(new Router().all('/x', guard, answering).routes())
  })

/** One operation guarded by what `withAuth` accepts. */
export const behind = (auth: unknown, above?: Parameters<typeof operation>[1]): Promise<Running> =>
  // Safe: `withAuth` checks its argument when it runs
  operation(withAuth(auth as AuthenticatorLike), above)

/** A write that another site made a browser send. */
export const crossSite: Sending = {
  method: 'POST',
  headers: { 'Sec-Fetch-Site': 'cross-site', Origin: 'https://a.evil' },
}

/** Sends a request to a port of the loopback address. */
export const askPort = async (
  port: number,
  path: string,
  { method = 'GET', headers = {}, body }: Sending,
): Promise<Omit<Answer, 'seen'>> => {
  const { text, ...answer } = await exchange({ port, path, method, headers: { ...headers } }, body)
  return { ...answer, body: parsed(text) }
}

// --- expectations

/** Expects that the handler ran once with this principal, and that the response has nothing of a refusal. */
export const expectPassed = (answer: Answer, principal: unknown): void => {
  expect({ ...pick(answer), seen: answer.seen }).toStrictEqual({
    status: 200,
    challenges: [],
    body: { ok: true },
    seen: [principal],
  })
}

/**
 * Expects that no handler ran, with this status, these challenges and this whole body, and that no cache may store it.
 */
export const expectDenied = (
  answer: Answer,
  status: number,
  challenges: ReadonlyArray<string>,
  detail = STATUS_CODES[status],
): void => {
  expect({ ...pick(answer), seen: answer.seen }).toStrictEqual({
    status,
    challenges,
    body: { type: 'about:blank', title: STATUS_CODES[status], status, detail },
    seen: [],
  })
  expect(answer.headers['content-type']).toBe('application/problem+json')
  expect(answer.headers['cache-control']).toBe('no-store')
}

/** Expects that no handler ran, and that Koa's own 500 shows nothing. */
export const expectCrashed = (answer: Answer): void => {
  expect({ ...pick(answer), seen: answer.seen }).toStrictEqual({
    status: 500,
    challenges: [],
    body: 'Internal Server Error',
    seen: [],
  })
}

const pick = ({ status, challenges, body }: Answer) => ({ status, challenges, body })

// --- common values

/** The challenges of an application without a realm. */
export const challenge = {
  bearer: 'Bearer realm="api"',
  refusedBearer: 'Bearer realm="api", error="invalid_token"',
  basic: 'Basic realm="api", charset="UTF-8"',
  session: 'Session realm="api"',
  custom: 'Custom realm="api"',
  key: (place: 'query' | 'header' | 'cookie', name = 'key') => `ApiKey realm="api", in="${place}", name="${name}"`,
}

/** A bearer authenticator with the principal `{ via: token }` for one token, which is also its realm. */
export const bearerOf = (token: string): Authenticator<{ via: string }> =>
  httpBearer({ realm: token, authenticate: (_request, sent) => sent === token && { via: token } })

export const bearer = (token: string) => ({ headers: { Authorization: `Bearer ${token}` } })

export const basic = (pair: string) => ({
  headers: { Authorization: `Basic ${Buffer.from(pair, 'utf8').toString('base64')}` },
})

/** Every form in which a hook may return a result. */
export const dialects: ReadonlyArray<readonly [name: string, say: (answer: unknown) => unknown]> = [
  ['a value', (answer) => answer],
  ['a promise', async (answer) => answer],
  ['an Option', O.some],
  ['an Either', E.right],
  ['a TaskEither', TE.right],
  ['a promise of an Option', async (answer) => O.some(answer)],
  ['a promise of an Either', async (answer) => E.right(answer)],
]
