/**
 * `expectIsolated` asks every operation whose path has parameters as each user for the objects of the others. What is not there and what
 * is not for the caller must be the same answer.
 *
 * It starts the application on a free port, and handlers run: use it with data of a test. Reading comes first, deleting last.
 */
import { objectConditionsIn } from '../core/Description.js'
import { effective } from '../core/Requirement.js'
import * as is from '../core/checks.js'
import { checkOptions, type Check, type Checks } from '../core/options.js'
import { isApplication } from '../koa/layer.js'
import { isAssetAmong, operationsOf, partAmong, routersOf, type RoutedOperation } from '../koa/operations.js'
import { comparable, hasWord, paramsOf, shown, spellings, targetOf, type Values } from './comparison.js'
import { refuse, type Violation } from './LawViolations.js'
import { serve, type Application, type HttpResponse, type Sent } from './probing.js'
import { mergeRequests, type RequestSpec } from './requests.js'

/** The ids of each user, by the user's name. */
export type IdsOfUsers = Readonly<Record<string, ReadonlyArray<string>>>

/** What `expectIsolated` needs to know about an application. */
export interface IsolatedOptions {
  /** At least two users, and the request of each, such as `withBearer('a-token')`. */
  readonly users: Readonly<Record<string, RequestSpec>>
  /** The ids of each user, by the name of a parameter, or by the name of an operation and then by that of a parameter. */
  readonly objects: Readonly<Record<string, IdsOfUsers | Readonly<Record<string, IdsOfUsers>>>>
  /** An id that does not exist, by the name of a parameter. */
  readonly unknown: Readonly<Record<string, string>>
  /** Bodies by the name of an operation; an object is sent as JSON. Default: none. */
  readonly bodies?: Readonly<Record<string, unknown>> | undefined
  /** Operations that are not asked, each with its reason. A parameter that is `unchecked` need not be listed. Default: none. */
  readonly skip?: Readonly<Record<string, string>> | undefined
  /** Names of header fields that may differ. `Date`, ids of requests and counts of a limiter always may. Default: none. */
  readonly ignore?: ReadonlyArray<string> | undefined
  /** How long an answer may take, in milliseconds. Default 5000. */
  readonly within?: number | undefined
}

/** What was asked of an operation. */
export interface IsolatedOperation {
  /** Its name, such as `GET /notes/:id`. */
  readonly operation: string
  /** How many requests were sent. */
  readonly requests: number
  /** Why it was not asked. */
  readonly skipped?: string
}

const record: Check = (where, value) => {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new TypeError(`${where} must be an object`)
}

const checks: Checks<IsolatedOptions> = {
  users: record,
  objects: record,
  unknown: record,
  bodies: is.maybe(record),
  skip: is.maybe(record),
  ignore: is.maybe(is.list),
  within: is.maybe(is.positive),
}

// --- what is asked

/** An operation, and the ids of each of its parameters. */
interface Asked {
  readonly operation: RoutedOperation
  /** Parameters that name objects. */
  readonly params: ReadonlyArray<readonly [name: string, ids: IdsOfUsers]>
  readonly requests: { count: number }
  hasLeak: boolean
}

// Of each user, so that the number of requests is bounded
const MAX_IDS = 3

const uncheckedIn = ({ requirement }: RoutedOperation): ReadonlyMap<string, string> => {
  const description = effective(requirement)?.description
  return new Map(
    description === undefined
      ? []
      : objectConditionsIn(description).flatMap(({ unchecked }) =>
          unchecked === undefined ? [] : [[unchecked.param, unchecked.reason] as const],
        ),
  )
}

const isOfOperation = (name: string): boolean => /^[A-Z-]+ /.test(name)

/** The ids of a parameter in an operation; `undefined` if the options have none. */
const idsFor = ({ objects }: IsolatedOptions, operation: string, param: string): IdsOfUsers | undefined => {
  const own = Object.hasOwn(objects, operation) ? objects[operation] : undefined
  // Safe, both: an entry by an operation has parameters, any other entry has users
  const ofOperation = own === undefined ? undefined : (own as Readonly<Record<string, IdsOfUsers>>)[param]
  return ofOperation ?? (Object.hasOwn(objects, param) ? (objects[param] as IdsOfUsers) : undefined)
}

const methodsOf = ({ method, methods }: RoutedOperation): ReadonlyArray<string> =>
  method === 'ALL' ? ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] : [...methods].sort()

// Reading, writing, deleting; of those that delete, what is inside of something else first
const orderOf = ({ operation: { method, path } }: Asked): number =>
  method === 'GET' || method === 'HEAD' || method === 'OPTIONS'
    ? 0
    : method === 'DELETE' || method === 'ALL'
      ? 1e6 - String(path).split('/').length
      : 1

/**
 * Asks every operation of an application that has path parameters, as each user, for the objects of the others. It resolves to what
 * was asked. It rejects with `LawViolations`, which has a command line for each leak: an answer that differs from that for an
 * unknown id in its status, header fields or body. It asks with each method, HEAD, and several spellings of the id. A GET without
 * parameters leaks if its body has an id of another user, of at least six characters. So that nothing is left out unseen, these are
 * violations, too: a parameter without ids and without a reason, an own id that is not answered with a 2xx, and names that fit no
 * operation. Of each user, three ids of a parameter are used.
 *
 * Handlers run, and may change and delete what they are asked for. Rejects with a TypeError for options that cannot work.
 *
 * @example
 * import Router from '@koa/router'
 * import Koa from 'koa'
 * import { httpBearer, owned, withAuth } from 'koa-with-auth'
 * import { expectIsolated, withBearer } from 'koa-with-auth/testing'
 *
 * const notes = new Map([['n1', 'anna'], ['n2', 'bert']])
 * const user = httpBearer({ authenticate: (_request, token) => ({ name: token }) })
 * const note = owned('note', { param: 'id', find: (id, one: { name: string }) => notes.get(id) === one.name })
 * const router = new Router()
 * router.get('/notes/:id', withAuth(user, note), (ctx) => {
 *   ctx.body = 'text'
 * })
 *
 * await expectIsolated(new Koa().use(router.routes()), {
 *   users: { anna: withBearer('anna'), bert: withBearer('bert') },
 *   objects: { id: { anna: ['n1'], bert: ['n2'] } },
 *   unknown: { id: 'n3' },
 * })
 */
export const expectIsolated = async (
  app: Application,
  given: IsolatedOptions,
): Promise<ReadonlyArray<IsolatedOperation>> => {
  const options = checkOptions('expectIsolated(app, options)', given, checks)
  const { users, unknown, bodies = {}, skip = {}, ignore = [], within = 5000 } = options
  if (!isApplication(app)) throw new TypeError('expectIsolated(app, options) takes a Koa application')
  const names = Object.keys(users)
  if (names.length < 2) throw new TypeError('expectIsolated(app, { users }): name at least two users')
  const operations = routersOf(app)
    .flatMap((router) => operationsOf(router))
    .filter(({ functions }) => !isAssetAmong(functions) && partAmong(functions) === undefined)
  const violations: Violation[] = []
  const violated = (law: string, counterexample: string, fix: string): void =>
    void violations.push({ law, counterexample, fix })

  const known = new Set(operations.map(({ name }) => name))
  const inPaths = new Set(operations.flatMap(paramsOf))
  const mentioned = { skip: Object.keys(skip), bodies: Object.keys(bodies), objects: Object.keys(options.objects) }
  for (const [where, keys] of Object.entries(mentioned)) {
    for (const key of keys) {
      if (known.has(key) || (where === 'objects' && !isOfOperation(key) && inPaths.has(key))) continue
      violated(
        `${where}: ${key} fits no operation`,
        [...known].join(', '),
        'write it as the audit does: GET /notes/:id',
      )
    }
  }
  const results = new Map<RoutedOperation, { count: number; skipped?: string }>()
  const asked: Asked[] = []
  const lists: RoutedOperation[] = []
  for (const operation of operations) {
    const { name } = operation
    const requests: { count: number; skipped?: string } = { count: 0 }
    results.set(operation, requests)
    const reasons = uncheckedIn(operation)
    const all = paramsOf(operation)
    const left = all.filter((param) => !reasons.has(param))
    const reason = skip[name] ?? (all.length > 0 && left.length === 0 ? reasons.get(all[0] ?? '') : undefined)
    if (reason !== undefined) {
      if (typeof reason !== 'string' || reason.trim() === '')
        violated(`${name}: it is skipped without a reason`, name, 'write why')
      requests.skipped = reason
    } else if (targetOf(operation, {}, (_param, value) => value) === undefined) {
      violated(
        `${name}: the path for requests is unknown`,
        name,
        'write the path as a string, or list it in { skip } with a reason',
      )
    } else if (all.length === 0) {
      if (operation.methods.includes('GET')) lists.push(operation)
    } else {
      const params = left.flatMap((param) => {
        const ids = idsFor(options, name, param)
        const owners = names.filter((user) => (ids?.[user] ?? []).length > 0)
        if (ids !== undefined && owners.length > 1 && unknown[param] !== undefined) return [[param, ids] as const]
        const missing =
          owners.length > 1 ? `unknown: { ${param}: ... }` : `objects: { ${param}: ... } with ids of two users`
        violated(
          `${name}: :${param} has no ids and no reason`,
          name,
          `add ${missing}, or unchecked('${param}', 'why'), or list it in { skip }`,
        )
        return []
      })
      if (params.length === left.length) asked.push({ operation, params, requests, hasLeak: false })
    }
  }
  asked.sort((one, other) => orderOf(one) - orderOf(other))

  const ignored = new Set(ignore.map((name) => name.toLowerCase()))
  const served = await serve(app, within)
  const send = (operation: RoutedOperation, user: string, method: string, url: string) => {
    const requests = results.get(operation)
    if (requests !== undefined) requests.count++
    const body = method === 'GET' || method === 'HEAD' ? undefined : bodies[operation.name]
    const type = typeof body === 'object' ? ([['Content-Type', 'application/json']] as const) : []
    const spec: Sent = {
      ...mergeRequests({ url, fields: type }, users[user] ?? {}, { method, url }),
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    }
    return served.ask(String(requests?.count), spec).then((answer) => ({ spec, answer }))
  }
  const valuesFor = ({ params }: Asked, user: string, at: number): Values =>
    Object.fromEntries(params.map(([name, ids]) => [name, cyclic(ids[user] ?? [], at)]))
  const rounds = ({ params }: Asked, user: string): number =>
    Math.min(MAX_IDS, Math.max(...params.map(([, ids]) => (ids[user] ?? []).length)))

  const compare = async (
    one: Asked,
    user: string,
    method: string,
    values: Values,
    replaced: ReadonlyArray<string>,
    owner: string,
  ) => {
    const { operation } = one
    const isReplaced = (param: string): boolean => replaced.includes(param)
    const without = { ...values, ...Object.fromEntries(replaced.map((param) => [param, unknown[param] ?? ''])) }
    for (const [words, spell] of Object.entries(spellings)) {
      const spelled = (of: Values) =>
        targetOf(operation, of, (param, value) => (isReplaced(param) ? spell : encodeURIComponent)(value)) ?? '/'
      const foreign = await send(operation, user, method, spelled(values))
      const missing = await send(operation, user, method, spelled(without))
      // a body is compared itself; of one that is not sent, only the length is known, and the id may be a part of it
      const hasLength = method === 'HEAD' && foreign.spec.url?.length === missing.spec.url?.length
      const sentIds = (of: Values) => replaced.map((param) => of[param] ?? '')
      const seen = (answer: HttpResponse | Error, of: Values): string =>
        answer instanceof Error
          ? 'no answer'
          : JSON.stringify(comparable(answer, sentIds(of), spell, ignored, hasLength))
      if (seen(foreign.answer, values) === seen(missing.answer, without)) continue
      one.hasLeak = true
      violated(
        `${operation.name}: ${method} as ${user} distinguishes ${replaced.map((param) => `:${param}`).join(' and ')} of ${owner} from an unknown id, ${words}`,
        `${shown(foreign)}\ninstead of the answer for an unknown id:\n${shown(missing)}`,
        'look it up with owned(...), whose answer for both is the same, or list the operation in { skip } with a reason',
      )
      return
    }
  }

  const askForeign = async (one: Asked): Promise<void> => {
    const { operation, params } = one
    for (const user of names) {
      for (const owner of names.filter((other) => other !== user)) {
        for (const method of methodsOf(operation)) {
          for (let at = 0; at < rounds(one, owner); at++) {
            const [own, others] = [valuesFor(one, user, 0), valuesFor(one, owner, at)]
            // what two users share is no secret between them
            const foreign = params.flatMap(([name, ids]) =>
              (ids[user] ?? []).includes(others[name] ?? '') ? [] : [name],
            )
            for (const param of foreign)
              await compare(one, user, method, { ...own, [param]: others[param] ?? '' }, [param], owner)
            if (foreign.length > 1) await compare(one, user, method, others, foreign, owner)
          }
        }
      }
    }
  }
  const askOwn = async (one: Asked): Promise<void> => {
    const { operation } = one
    const method = operation.method === 'ALL' ? 'GET' : operation.method
    for (const user of one.hasLeak ? [] : names) {
      if (one.params.some(([, ids]) => (ids[user] ?? []).length === 0)) continue
      for (let at = 0; at < rounds(one, user); at++) {
        const target =
          targetOf(operation, valuesFor(one, user, at), (_param, value) => encodeURIComponent(value)) ?? '/'
        const { spec, answer } = await send(operation, user, method, target)
        if (!(answer instanceof Error) && answer.status >= 200 && answer.status < 300) continue
        violated(
          `${operation.name}: an own id of ${user} is not answered with a 2xx`,
          shown({ spec, answer }),
          'name ids that exist, a request that is let in, and a body in { bodies } if it needs one',
        )
      }
    }
  }
  const askList = async (operation: RoutedOperation): Promise<void> => {
    const target = targetOf(operation, {}, (_param, value) => value) ?? '/'
    for (const user of names) {
      const { spec, answer } = await send(operation, user, 'GET', target)
      if (answer instanceof Error) continue
      const all = asked.flatMap(({ params }) => params.map(([, ids]) => ids))
      const own = new Set(all.flatMap((ids) => ids[user] ?? []))
      const others = new Set(
        all.flatMap((ids) => Object.values(ids).flat()).filter((id) => id.length >= 6 && !own.has(id)),
      )
      const found = [...others].find((id) => hasWord(answer.body, id))
      if (found === undefined) continue
      violated(
        `${operation.name}: as ${user}, it lists an id of another user: ${found}`,
        shown({ spec, answer }),
        'scope the query by the user, or list the operation in { skip } with a reason',
      )
    }
  }
  try {
    for (const operation of lists) await askList(operation)
    for (const one of asked) {
      await askForeign(one)
      await askOwn(one)
    }
  } finally {
    await served.close()
  }
  refuse('an application', violations)
  return [...results].map(([{ name }, { count, skipped }]) => ({
    operation: name,
    requests: count,
    ...(skipped !== undefined && { skipped }),
  }))
}

const cyclic = (ids: ReadonlyArray<string>, at: number): string => ids[at % Math.max(1, ids.length)] ?? ''
