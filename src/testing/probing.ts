/**
 * Tripwires: for a while, a router uses copies of its layers. In these, a wire follows the guard instead of the
 * handlers, and reports whether a handler would have run.
 *
 * So no handler runs, and a violation does no harm and needs no database. Middleware before a guard, and above the
 * router, runs as usual. The router's own layers are not changed, because it may be sealed.
 */
import { Agent, createServer, request as send, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Context } from 'koa'
import { compile } from 'path-to-regexp'
import type { Description } from '../core/Description.js'
import { decideOf, make, type Authenticator } from '../core/Authenticator.js'
import { allOf } from '../core/allOf.js'
import { unlessThrown } from '../core/data.js'
import * as Requirement from '../core/Requirement.js'
import type { Layer, RouterInstance } from '../koa/router.js'
import { applicationGuard, guardFor } from '../koa/guard.js'
import { copyLayer, isGuard, pathInWords, routerOf, type GuardFunction, type RouterLayer } from '../koa/layer.js'
import { operationsOf } from '../koa/operations.js'
import { isPattern, parameterNames } from '../koa/parameters.js'
import { planned, planOf, writePlan } from '../koa/plan.js'
import { describedLocations, type CredentialLocation } from './CredentialLocation.js'
import type { HeaderLine, RequestSpec } from './requests.js'

// Routers on which `expectGuarded` is running
const probedRouters = new WeakSet<object>()

export interface Tested {
  readonly layer: Layer
  /** The methods that a client can send, HEAD last. */
  readonly methods: ReadonlyArray<string>
  readonly path: string
  /** `GET /pets`; `ALL /pets` if it answers every method. */
  readonly name: string
  /** As they were written, before tripwires. */
  readonly functions: ReadonlyArray<Function>
  /** The path for requests; `undefined` if it is unknown, such as for a RegExp. */
  readonly target: string | undefined
  /** The demands of its guard and of those of the application; `undefined` if anyone may call. */
  readonly description: Description | undefined
  /** The demands of those of the application (`guardApp`); `undefined` if there are none. */
  readonly demandedAbove: Description | undefined
  readonly locations: ReadonlyArray<CredentialLocation>
}

export interface Filling {
  /** Values of path parameters, by name; `1` for the others. */
  readonly params?: Readonly<Record<string, string>> | undefined
  /** Whole targets, by the operation's name or its path: for a RegExp, or for values that must fit together. */
  readonly paths?: Readonly<Record<string, string>> | undefined
}

export const testedOf = (
  app: Application,
  router: RouterInstance,
  { params = {}, paths = {} }: Filling,
): ReadonlyArray<Tested> => {
  const above = guardsAbove(app, router)
  const valueOf = (param: string): string => encodeURIComponent(params[param] ?? '1')
  return operationsOf(router).map(({ layer, name, methods, functions, requirement, isAfterItsHandler }) => {
    const path = pathInWords(layer)
    const own = isAfterItsHandler ? undefined : Requirement.effective(requirement)
    const description = all(own === undefined ? above : [...above, own])
    return {
      layer,
      methods: methods
        .filter((method) => method !== 'CONNECT')
        .toSorted((one, other) => Number(one === 'HEAD') - Number(other === 'HEAD')),
      path,
      name,
      functions,
      target: paths[name] ?? paths[path] ?? requestTarget(layer, valueOf),
      description,
      demandedAbove: all(above),
      locations: description === undefined ? [] : describedLocations(description),
    }
  })
}

const all = ([first, ...others]: ReadonlyArray<Authenticator<unknown>>): Description | undefined =>
  first === undefined || others.length === 0 ? first?.description : allOf([first, ...others]).description

// The guards of an application that a request passes before it reaches the router
const guardsAbove = (app: Application, router: object): ReadonlyArray<Authenticator<unknown>> => {
  const middleware = functionsOfApp(app)
  const at = middleware.findIndex((f) => routerOf(f) === router)
  return middleware
    .slice(0, at === -1 ? middleware.length : at)
    .flatMap((f) => (isGuard(f) ? (Requirement.effective(f.requirement) ?? []) : []))
}

const functionsOfApp = (app: object): ReadonlyArray<Function> =>
  'middleware' in app && Array.isArray(app.middleware) ? app.middleware.filter((f) => typeof f === 'function') : []

/** The target of a request: `spell` writes each parameter. It is `undefined` if it is unknown, such as for a RegExp. */
export const requestTarget = (layer: RouterLayer, spell: (param: string) => string): string | undefined => {
  if (typeof layer.path !== 'string' || isPattern(layer)) return undefined
  // without the patterns that `compile` cannot read
  const path = layer.path.replaceAll('(.*)', '')
  const values = () => Object.fromEntries(parameterNames(layer).map((name) => [name, spell(name)]))
  return unlessThrown(() => compile(path, { encode: false })(values()))
}

const PROBE = 'X-Koa-With-Auth-Probe'

interface Trace {
  /** The operations whose guards it reached, in order. An operation without a guard is reached itself. */
  readonly reached: Tested[]
  /** Set if it passed the guard, so that a handler would have run. */
  ran: { readonly by: Tested; readonly auth: unknown } | undefined
}

/** Lays tripwires. `remove` restores the handlers. Throws an Error if the router has tripwires already. */
const layTripwires = (router: RouterInstance, operations: ReadonlyArray<Tested>) => {
  if (probedRouters.has(router)) {
    throw new Error('expectGuarded is running on this router already; await the first call')
  }
  const traces = new Map<string, Trace>()
  const traceOf = (probe: string): Trace => {
    const trace = traces.get(probe) ?? { reached: [], ran: undefined }
    traces.set(probe, trace)
    return trace
  }
  const layers = new Map(operations.map(({ layer }) => [layer, wired(layer, operations, traceOf)]))
  const wire = (layer: Layer): Layer => layers.get(layer) ?? layer
  const own = Object.getOwnPropertyDescriptor(router, 'match')
  const { match } = router
  probedRouters.add(router)
  Object.defineProperty(router, 'match', {
    value(this: RouterInstance, path: string, method: string) {
      const matched = match.call(this, path, method)
      return { ...matched, path: matched.path.map(wire), pathAndMethod: matched.pathAndMethod.map(wire) }
    },
    configurable: true,
  })
  return {
    traceOf,
    remove: () => {
      probedRouters.delete(router)
      Reflect.deleteProperty(router, 'match')
      if (own !== undefined) Object.defineProperty(router, 'match', own)
    },
  }
}

const wired = (layer: Layer, operations: ReadonlyArray<Tested>, traceOf: (probe: string) => Trace): Layer => {
  const plan = planOf(layer)
  const ofLayer = operations.filter((tested) => tested.layer === layer)
  const askedBy = ({ method }: Pick<Context, 'method'>): Tested =>
    ofLayer.find(({ methods }) => methods.includes(method)) ?? ofLayer[0]!
  const reach = (ctx: Context, next: () => Promise<unknown>): Promise<unknown> => {
    traceOf(ctx.get(PROBE)).reached.push(askedBy(ctx))
    return next()
  }
  const trip = (ctx: Context): void => {
    traceOf(ctx.get(PROBE)).ran = { by: askedBy(ctx), auth: Reflect.get(ctx.request, 'auth') as unknown }
    ctx.status = 204
  }
  const copy = copyLayer(layer)
  const guard = plan.guard && guardAlone(plan.guard)
  writePlan(
    copy,
    guard === undefined
      ? planned({ ...plan, applications: [], ahead: [], after: [reach, trip] })
      : planned({ ...plan, ahead: [...plan.ahead, reach], guard, after: [trip] }),
  )
  return copy
}

// The same guard without the middleware that the user wrote after it
const guardAlone = (guard: GuardFunction): GuardFunction => {
  const authenticator = Requirement.effective(guard.requirement)
  const requirement =
    authenticator === undefined ? guard.requirement : Requirement.guardedBy(withoutCounting(authenticator))
  return guardFor(requirement, { ...guard, then: undefined })
}

// It counts no guesses, and no count refuses them: a check must not lock out the users of the application, nor depend on who
// tried before
const withoutCounting = (self: Authenticator<unknown>): Authenticator<unknown> =>
  make(self.description, (attempt) => {
    attempt.whole.isUncounted = true
    return decideOf(self)(attempt)
  })

// The same application, whose own guards count no guesses
const countingNone = (app: Application): Pick<Application, 'callback'> => {
  const middleware = functionsOfApp(app)
  if (!middleware.some(isGuard)) return app
  const value = middleware.map((f) => {
    const authenticator = isGuard(f) ? Requirement.effective(f.requirement) : undefined
    return authenticator === undefined
      ? f
      : applicationGuard(withoutCounting(authenticator), Requirement.guardedBy(authenticator))
  })
  // Safe: it inherits everything else
  return Object.create(app, { middleware: { value } }) as Application
}

export interface HttpResponse {
  readonly status: number
  readonly lines: ReadonlyArray<HeaderLine>
  readonly body: string
}

/** A Koa application. */
export interface Application {
  callback(): RequestListener
  on(event: 'error', listener: (error: unknown, ctx?: Context) => void): unknown
  off(event: 'error', listener: (error: unknown, ctx?: Context) => void): unknown
}

export type SentRequest = RequestSpec & { readonly body?: string | undefined }

/** Serves an application on a free port. Its errors are collected instead of printed. */
export const serveApplication = async (app: Application, within: number) => {
  const errors = new Map<string, unknown>()
  const keep = (error: unknown, ctx?: Context): void => {
    if (ctx !== undefined) errors.set(ctx.get(PROBE), error)
  }
  // before `callback`, which adds a listener that prints if there is none
  app.on('error', keep)
  const server = createServer(countingNone(app).callback())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const agent = new Agent({ keepAlive: true })
  // Safe: it listens on a port
  const { port } = server.address() as AddressInfo
  /** Sends a request. If there is no response, it resolves to the Error. */
  const ask = (
    probe: string,
    { method = 'GET', url = '/', fields = [], body }: SentRequest,
  ): Promise<HttpResponse | Error> =>
    new Promise((resolve) => {
      const host = fields.some(([name]) => name.toLowerCase() === 'host') ? [] : ['Host', `127.0.0.1:${port}`]
      const length = body === undefined ? [] : ['Content-Length', String(Buffer.byteLength(body))]
      const headers = [...host, ...fields.flat(), ...length, PROBE, probe]
      const signal = AbortSignal.timeout(Math.ceil(within))
      try {
        const asking = send({ agent, host: '127.0.0.1', port, method, path: url, headers, signal }, (response) => {
          const { rawHeaders, statusCode: status = 0 } = response
          const lines = rawHeaders.flatMap((name, at): HeaderLine[] =>
            at % 2 === 1 ? [] : [[name, rawHeaders[at + 1] ?? '']],
          )
          text(response).then((received) => resolve({ status, lines, body: received }), resolve)
        })
        asking.on('error', resolve)
        asking.end(body)
      } catch (error) {
        resolve(error instanceof Error ? error : new Error(String(error)))
      }
    })
  return {
    ask,
    errorOf: (probe: string): unknown => errors.get(probe),
    close: async (): Promise<void> => {
      agent.destroy()
      app.off('error', keep)
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Serves an application, and lays tripwires on its router. Rejects with an Error if the router has tripwires already. */
export const probing = async (
  app: Application,
  router: RouterInstance,
  operations: ReadonlyArray<Tested>,
  within: number,
) => {
  const wires = layTripwires(router, operations)
  try {
    const served = await serveApplication(app, within)
    let sent = 0
    return {
      ask: async (spec: RequestSpec) => {
        const probe = String(++sent)
        const answer = await served.ask(probe, spec)
        return { spec, answer, trace: wires.traceOf(probe), error: served.errorOf(probe) }
      },
      close: () => served.close().finally(wires.remove),
    }
  } catch (error) {
    wires.remove()
    throw error
  }
}

export type Probe = Awaited<ReturnType<Awaited<ReturnType<typeof probing>>['ask']>>
