/** The programs of levelModel.ts as real routers, and what each answers, without a socket. */
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import Router, { type RouterInstance } from '@koa/router'
import { apiKeyHeader, also, type Guard } from 'koa-with-auth'
import Koa from 'koa'
import { guardOf } from './levels.js'
import {
  outcomeOf,
  requestsOf,
  type Asked,
  type Decision,
  type Key,
  type Mounting,
  type Program,
} from './levelModel.js'

// --- guards

const LEVELS = 4
const headerOf = (key: Key): string => `X-Key-${key}`
const keys = new Map(
  Array.from({ length: LEVELS }, (_, level) => [`${level}a`, `${level}b`])
    .flat()
    .map((key) => [
      key,
      apiKeyHeader({ realm: key, paramName: headerOf(key), authenticate: (_request, sent) => sent === key && key }),
    ]),
)
const keyFor = (level: number, letter: 'a' | 'b') => keys.get(`${level}${letter}`)!
const guards = Array.from({ length: LEVELS }, (_, level): Readonly<Record<Decision, Guard<unknown> | undefined>> => ({
  unset: undefined,
  null: guardOf(null),
  one: guardOf(keyFor(level, 'a')),
  list: guardOf([keyFor(level, 'a'), keyFor(level, 'b')]),
  also: guardOf(also(keyFor(level, 'a'))),
}))

// --- routers

type Handler = (ctx: { request: object; body: unknown }) => void

/** The middleware of a program in one mounting. Its operation is `GET /r/r/o` of three routers. */
export const routersOf = (program: Program, mounting: Mounting, handler: Handler) => {
  const last = program.length - 1
  const build = (level: number): ReturnType<RouterInstance['routes']> => {
    const isNested = level > 0 && mounting.by === 'prefix'
    const base: RouterInstance = isNested ? new Router({ prefix: '/r' }) : new Router()
    const fill = (router: RouterInstance): void => {
      const own = guards[level + 1]![program[level + 1]!]
      if (level + 1 < last) {
        const inner = build(level + 1)
        if (mounting.by === 'prefix') router.use(inner)
        else router.use('/r', inner)
      } else if (own === undefined) router.get('/o', handler)
      else router.get('/o', own, handler)
    }
    const moment = mounting.moments[level]
    if (moment === 'before') fill(base)
    const guarded: RouterInstance = guards[level]![program[level]!]?.(base) ?? base
    if (moment === 'after') fill(guarded)
    const routes = guarded.routes()
    if (moment === 'served') fill(guarded)
    return routes
  }
  return build(0)
}

/** The path of the operation of a program. */
const pathOf = (program: Program): string => `${'/r'.repeat(program.length - 2)}/o`

// --- requests

const app = new Koa()
const socket = new Socket()
const offerOf = (key: Key): string => `ApiKey realm="${key}", in="header", name="${headerOf(key)}"`

const headersOf = ({ right, wrong }: Asked): Record<string, string> =>
  Object.fromEntries([
    ...[...right].map((key) => [headerOf(key).toLowerCase(), key] as const),
    ...[...wrong].map((key) => [headerOf(key).toLowerCase(), 'wrong'] as const),
  ])

/** What is different from the specification, for each request of a program in one mounting; empty if nothing is. */
export const differences = async (program: Program, mounting: Mounting): Promise<ReadonlyArray<string>> => {
  let calls = 0
  let principal: unknown
  const routes = routersOf(program, mounting, (ctx) => {
    calls++
    principal = 'auth' in ctx.request ? ctx.request.auth : undefined
    ctx.body = 'ran'
  })
  const found: string[] = []
  for (const asked of requestsOf(program)) {
    calls = 0
    principal = undefined
    const headers = headersOf(asked)
    const req = new IncomingMessage(socket)
    const url = pathOf(program)
    // a real parser fills both
    Object.assign(req, { method: 'GET', url, headers, rawHeaders: Object.entries(headers).flat() })
    const ctx = app.createContext(req, new ServerResponse(req))
    // Safe: the router makes its own context of this one
    await routes(ctx as never, async () => {})
    const challenge = [ctx.response.headers['www-authenticate'] ?? ''].flat().join(', ')
    const seen = { status: ctx.status, challenge, calls, principal: JSON.stringify(principal) }
    const outcome = outcomeOf(program, asked.right)
    const must = outcome.passes
      ? { status: 200, challenge: '', calls: 1, principal: JSON.stringify(outcome.principal) }
      : { status: 401, challenge: outcome.offers.map(offerOf).join(', '), calls: 0, principal: undefined }
    if (JSON.stringify(seen) !== JSON.stringify(must)) {
      const sent = `right: ${[...asked.right].join()}, wrong: ${[...asked.wrong].join()}`
      found.push(
        `${program.join()} ${mounting.moments.join()} by ${mounting.by}, ${sent}: ${JSON.stringify({ seen, must })}`,
      )
    }
  }
  return found
}
