/**
 * The examples of examples/events over HTTP, with the real pino and OpenTelemetry. What they write contains no
 * credential.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { createServer as createHttp } from 'node:http'
import { createRequire } from 'node:module'
import Router from '@koa/router'
import { context, ROOT_CONTEXT, trace, type Context, type ContextManager } from '@opentelemetry/api'
import { KoaInstrumentation } from '@opentelemetry/instrumentation-koa'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { Ajv2020 } from 'ajv/dist/2020.js'
import Koa from 'koa'
import { AuthError, authorize, authSettings, httpBearer, optional, withAuth } from 'koa-with-auth'
import { on } from 'koa-with-auth/events'
import { apiKeys } from 'koa-with-auth/keys'
import { memoryStore } from 'koa-with-auth/stores'
import { sessions } from 'koa-with-auth/sessions'
import * as E from 'fp-ts/lib/Either.js'
import { pino } from 'pino'
import { describe, expect, it, onTestFinished } from 'vitest'
import { auditLog, type AuditEvent } from '../../examples/events/auditLog.js'
import { logDecisions } from '../../examples/events/logging.js'
import { measureDecisions } from '../../examples/events/metrics.js'
import { traceDecisions } from '../../examples/events/tracing.js'
import { ask, listen, listening } from '../support/servers/server.js'

const SECRET = 's3cr3t-cr3d3nt1al'
const bearer = httpBearer({
  schemeName: 'user',
  authenticate: (_request, token) => {
    if (token === `${SECRET}down`) return E.left(AuthError.unavailable(1))
    return token === SECRET && { id: 'u7', token }
  },
})

const application = (handled: () => unknown = () => undefined) => {
  const router = new Router()
  const answer = (ctx: Koa.Context) => {
    handled()
    ctx.body = 'in'
  }
  router.get('/me/:id', withAuth(bearer), answer)
  router.get('/staff', withAuth(authorize(() => false)(bearer)), answer)
  router.get('/maybe', withAuth(optional(bearer)), answer)
  router.get('/open', withAuth(null), answer)
  const app = new Koa()
  app.silent = true
  app.use(authSettings({ events: { subject: ({ id }: { id: string }) => id } }))
  return app.use(router.routes())
}

const requests: ReadonlyArray<readonly [path: string, token?: string]> = [
  ['/me/7', SECRET],
  ['/me/7'],
  ['/me/7', `${SECRET}x`],
  ['/staff', SECRET],
  ['/me/7', `${SECRET}down`],
  ['/maybe'],
  ['/open'],
]

/** Sends the requests of the list. Returns the statuses. */
const askAll = async (url: string): Promise<ReadonlyArray<number>> => {
  const statuses: number[] = []
  for (const [path, token] of requests) {
    const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` }
    statuses.push((await ask(`${url}${path}?key=${SECRET}`, { headers })).status)
  }
  return statuses
}

const served = async (): Promise<void> => {
  const { url } = await listen(application())
  expect(await askAll(url)).toStrictEqual([200, 401, 401, 403, 503, 200, 200])
}

const lines = () => {
  let text = ''
  return { stream: { write: (line: string) => void (text += line) }, text: () => text }
}

describe('logging.ts', () => {
  it('writes a line of pino for each decision, at its level', async () => {
    const { stream, text } = lines()
    onTestFinished(logDecisions(pino({ level: 'debug' }, stream)))
    await served()
    await expect.poll(() => text().trim().split('\n').length).toBe(requests.length)
    const written = text()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { level: number; msg: string; auth: object })
    expect(written.map(({ level, msg }) => [level, msg])).toStrictEqual([
      [20, 'GET /me/:id 200 accepted'],
      [30, 'GET /me/:id 401 absent'],
      [30, 'GET /me/:id 401 invalid'],
      [40, 'GET /staff 403 insufficient'],
      [50, 'GET /me/:id 503 unavailable'],
      [20, 'GET /maybe 200 anonymous'],
      [20, 'GET /open 200 public'],
    ])
    expect(written[0]?.auth).toMatchObject({ outcome: 'accepted', scheme: 'user', level: 'operation', subject: 'u7' })
    expect(text()).not.toContain(SECRET)
  })
})

describe('metrics.ts', () => {
  it('counts and measures each decision with the instruments of ASP.NET Core 10', async () => {
    const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
    const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
    const provider = new MeterProvider({ readers: [reader] })
    onTestFinished(() => provider.shutdown())
    onTestFinished(measureDecisions(provider.getMeter('site')))
    let heard = 0
    onTestFinished(on('decision', () => heard++))
    await served()
    await expect.poll(() => heard).toBe(requests.length)
    await provider.forceFlush()
    const metrics = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics))
    const pointsOf = (name: string) => {
      const metric = metrics.find(({ descriptor }) => descriptor.name === `aspnetcore.authentication.${name}`)
      const points = (metric?.dataPoints ?? []).map(({ attributes, value }): readonly [string, number] => [
        JSON.stringify(Object.values(attributes)),
        typeof value === 'number' ? value : value.count,
      ])
      return [metric?.descriptor.unit, Object.fromEntries(points)]
    }
    expect(pointsOf('authenticate.duration')).toStrictEqual([
      's',
      {
        '["user","success"]': 1,
        '["user","none"]': 1,
        '["user","failure"]': 2,
        '["user","unavailable","failure"]': 1,
        '["none"]': 1,
      },
    ])
    expect(pointsOf('challenges')).toStrictEqual(['{request}', { '["user"]': 2 }])
    expect(pointsOf('forbids')).toStrictEqual(['{request}', { '["user"]': 1 }])
    expect(JSON.stringify(metrics)).not.toContain(SECRET)
  })
})

// The attributes of OCSF 1.4 that events of these classes need, and those that the example writes
const ocsf = new Ajv2020({ allowUnionTypes: true }).compile({
  type: 'object',
  properties: {
    category_uid: { const: 3 },
    class_uid: { enum: [3002, 3004] },
    activity_id: { type: 'integer' },
    type_uid: { type: 'integer' },
    time: { type: 'integer' },
    severity_id: { enum: [0, 1, 2, 3, 4, 5, 6, 99] },
    status_id: { enum: [0, 1, 2, 99] },
    metadata: {
      type: 'object',
      properties: { version: { type: 'string' }, product: { type: 'object', required: ['vendor_name'] } },
      required: ['version', 'product'],
    },
    user: { type: 'object', anyOf: ['account', 'name', 'uid'].map((name) => ({ required: [name] })) },
    entity: { type: 'object', anyOf: ['name', 'uid'].map((name) => ({ required: [name] })) },
  },
  required: ['category_uid', 'class_uid', 'activity_id', 'type_uid', 'time', 'severity_id', 'metadata'],
  // Each event needs one of these, which name what was requested
  if: { properties: { class_uid: { const: 3002 } } },
  then: { required: ['user'], anyOf: [{ required: ['service'] }, { required: ['dst_endpoint'] }] },
  else: { required: ['entity'] },
  // An activity that is not in the list has a name
  dependentSchemas: {
    activity_id: { if: { properties: { activity_id: { const: 99 } } }, then: { required: ['activity_name'] } },
  },
})

describe('auditLog.ts', () => {
  it('writes OCSF events with all attributes that their classes require, for decisions and keys', async () => {
    const events: AuditEvent[] = []
    onTestFinished(auditLog('site', (event) => events.push(event)))
    await served()
    const keys = apiKeys({ prefix: 'acme', store: memoryStore() })
    const { key, id } = await keys.issue({ owner: 'u7' })
    const { key: second } = await keys.rotate(id, { overlap: 0 })
    await keys.revoke(id)
    await expect.poll(() => events.length).toBe(9)
    for (const event of events) {
      expect(ocsf(event), JSON.stringify([event, ocsf.errors])).toBe(true)
      expect(event['type_uid']).toBe(event.class_uid * 100 + Number(event['activity_id']))
    }
    expect(events.map(({ status_id, status_detail, user }) => [status_id, status_detail, user])).toStrictEqual([
      [1, 'accepted', { type_id: 1, uid: 'u7' }],
      [2, 'absent', { type_id: 0, name: 'unknown' }],
      [2, 'invalid', { type_id: 0, name: 'unknown' }],
      [2, 'insufficient', { type_id: 0, name: 'unknown' }],
      [2, 'unavailable', { type_id: 0, name: 'unknown' }],
      [1, 'anonymous', { type_id: 0, name: 'unknown' }],
      [1, 'issued', undefined],
      [1, 'rotated', undefined],
      [1, 'revoked', undefined],
    ])
    const text = JSON.stringify(events)
    for (const secret of [SECRET, key, second, key.slice(5), second.slice(5)]) expect(text).not.toContain(secret)
  })
})

describe('auditLog.ts, with sessions', () => {
  it('writes a logon and a logoff of one session for a sign-in and a sign-out, without the cookie', async () => {
    const events: AuditEvent[] = []
    onTestFinished(auditLog('site', (event) => events.push(event)))
    const app = new Koa()
    app.keys = ['a signing key of at least 32 characters']
    const anna = { username: 'anna', isActive: true }
    const { logIn, logOut } = sessions(app, { name: 'site', store: memoryStore(), loadUser: async () => anna })
    const router = new Router()
    const done = (f: (ctx: Koa.Context) => Promise<unknown>) => async (ctx: Koa.Context) => {
      await f(ctx)
      ctx.status = 204
    }
    const signIn = done((ctx) => logIn(ctx, anna))
    router.post('/login', withAuth(null), signIn)
    router.post('/logout', withAuth(null), done(logOut))
    const { url, errors } = await listen(app.use(router.routes()))
    const first = await ask(`${url}/login`, { method: 'POST' })
    expect([first.status, errors]).toStrictEqual([204, []])
    const cookies = first.headers.getSetCookie().map((line) => line.split(';')[0]!)
    expect(cookies.length).toBeGreaterThan(0)
    const last = await ask(`${url}/logout`, { method: 'POST', headers: { Cookie: cookies.join('; ') } })
    expect(last.status).toBe(204)
    await expect.poll(() => events.length).toBe(2)
    for (const event of events) expect(ocsf(event), JSON.stringify([event, ocsf.errors])).toBe(true)
    expect(events.map(({ type_uid, status_detail }) => [type_uid, status_detail])).toStrictEqual([
      [300_201, 'signed in'],
      [300_202, 'logOut'],
    ])
    expect(events[0]?.['session']).toStrictEqual(events[1]?.['session'])
    const text = JSON.stringify(events)
    for (const cookie of cookies) expect(text).not.toContain(cookie.slice(cookie.indexOf('=') + 1))
  })
})

describe('tracing.ts', () => {
  it('sets the decision of each request on its own span under the Koa instrumentation', async () => {
    const storage = new AsyncLocalStorage<Context>()
    const manager: ContextManager = {
      active: () => storage.getStore() ?? ROOT_CONTEXT,
      with: (active, f, self, ...args) => storage.run(active, () => Reflect.apply(f, self, args) as never),
      bind: (_active, target) => target,
      enable: () => manager,
      disable: () => manager,
    }
    context.setGlobalContextManager(manager)
    const exporter = new InMemorySpanExporter()
    const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
    trace.setGlobalTracerProvider(tracerProvider)
    const instrumentation = new KoaInstrumentation()
    instrumentation.setTracerProvider(tracerProvider)
    onTestFinished(() => {
      instrumentation.disable()
      trace.disable()
      context.disable()
    })
    // From now on, modules that `require` loads are instrumented; the class is the same
    expect(createRequire(import.meta.url)('koa')).toBe(Koa)
    onTestFinished(traceDecisions())

    const listener = application().callback()
    const tracer = trace.getTracer('site')
    // As the instrumentation of node:http does
    const server = createHttp((request, response) => {
      const span = tracer.startSpan(`${request.method} ${request.url?.split('?')[0]}`)
      response.once('close', () => span.end())
      context.with(trace.setSpan(ROOT_CONTEXT, span), () => void listener(request, response))
    })
    const url = `http://127.0.0.1:${await listening(server)}`
    // In parallel, so that a mix-up would show
    const paths = ['/me/1', '/staff', '/maybe', '/open', '/me/2', '/maybe']
    const headers = { Authorization: `Bearer ${SECRET}` }
    await Promise.all(paths.map((path, at) => ask(`${url}${path}`, at === 4 ? {} : { headers })))
    await expect.poll(() => exporter.getFinishedSpans().filter(({ name }) => name.startsWith('GET')).length).toBe(6)
    const spans = exporter.getFinishedSpans()
    expect(spans.map(({ name }) => name)).toContain('router - /me/:id')
    const outcomes = spans.flatMap(({ name, attributes: { 'auth.outcome': outcome, 'auth.failure': failure } }) =>
      name.startsWith('GET') ? [`${name} ${String(outcome)} ${String(failure)}`] : [],
    )
    expect(outcomes.sort()).toStrictEqual([
      'GET /maybe accepted undefined',
      'GET /maybe accepted undefined',
      'GET /me/1 accepted undefined',
      'GET /me/2 refused absent',
      'GET /open public undefined',
      'GET /staff forbidden insufficient',
    ])
    for (const { attributes } of spans) expect(JSON.stringify(attributes)).not.toContain(SECRET)
  })
})
