/** The check of a served application: no user can tell the objects of others from objects that do not exist. Reads come first, deletions last. */
import { objectConditionsIn } from '../core/Description.js'
import { effective } from '../core/Requirement.js'
import * as is from '../core/checks.js'
import { checkOptions, type Checks } from '../core/options.js'
import { isApplication, routersOf } from '../koa/layer.js'
import { docsAmong, operationsOf, type RoutedOperation } from '../koa/operations.js'
import { parameterNames } from '../koa/parameters.js'
import { throwViolations, type Violation } from './LawViolations.js'
import { serveApplication, requestTarget, type Application, type HttpResponse, type SentRequest } from './probing.js'
import { mergeRequests, type RequestSpec } from './requests.js'

/** The ids of each user, by the user's name. */
export type IdsOfUsers = Readonly<Record<string, ReadonlyArray<string>>>

/** The users, ids and requests that `expectIsolated` needs. */
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

/** The requests to an operation. */
export interface IsolatedOperation {
  /** Its name, such as `GET /notes/:id`. */
  readonly operation: string
  /** How many requests were sent. */
  readonly requests: number
  /** Why it was not asked. */
  readonly skipped?: string
}

const isolatedChecks: Checks<IsolatedOptions> = {
  users: is.record,
  objects: is.record,
  unknown: is.record,
  bodies: is.maybe(is.record),
  skip: is.maybe(is.record),
  ignore: is.maybe(is.list),
  within: is.maybe(is.positive),
}

type Values = Readonly<Record<string, string>>

interface Asked {
  readonly operation: RoutedOperation
  readonly params: ReadonlyArray<readonly [name: string, ids: IdsOfUsers]>
  readonly skipped?: string
  /** Whether it is asked: it is not skipped, and all of it is known. */
  readonly isAsked: boolean
  requests: number
  hasLeak: boolean
}

type Violated = (law: string, counterexample: string, fix: string) => void

// Of each user, so that the number of requests is bounded
const MAX_IDS = 3

const uncheckedIn = ({ requirement }: RoutedOperation): ReadonlyMap<string, string> => {
  const description = effective(requirement)?.description
  const conditions = description === undefined ? [] : objectConditionsIn(description)
  return new Map(conditions.flatMap(({ unchecked: one }) => (one === undefined ? [] : [[one.param, one.reason]])))
}

const idsFor = ({ objects }: IsolatedOptions, operation: string, param: string): IdsOfUsers | undefined => {
  const own = Object.hasOwn(objects, operation) ? objects[operation] : undefined
  // Safe, both: an entry by an operation has parameters, any other entry has users
  const ofOperation = own === undefined ? undefined : (own as Readonly<Record<string, IdsOfUsers>>)[param]
  return ofOperation ?? (Object.hasOwn(objects, param) ? (objects[param] as IdsOfUsers) : undefined)
}

const checkNames = (
  { skip = {}, bodies = {}, objects }: IsolatedOptions,
  operations: ReadonlyArray<RoutedOperation>,
  violated: Violated,
): void => {
  const known = new Set(operations.map(({ name }) => name))
  const inPaths = new Set(operations.flatMap(({ layer }) => parameterNames(layer)))
  for (const [where, mentioned] of Object.entries({ skip, bodies, objects })) {
    for (const key of Object.keys(mentioned)) {
      if (known.has(key) || (where === 'objects' && !/^[A-Z-]+ /.test(key) && inPaths.has(key))) continue
      const fix = 'write it as the audit does: GET /notes/:id'
      violated(`${where}: ${key} fits no operation`, [...known].join(', '), fix)
    }
  }
}

const askedOf = (operation: RoutedOperation, options: IsolatedOptions, violated: Violated): Asked => {
  const { name, layer } = operation
  const { users, unknown, skip = {} } = options
  const reasons = uncheckedIn(operation)
  const all = parameterNames(layer)
  const left = all.filter((param) => !reasons.has(param))
  const asked: Asked = { operation, params: [], isAsked: false, requests: 0, hasLeak: false }
  const skipped = skip[name] ?? (all.length > 0 && left.length === 0 ? reasons.get(all[0] ?? '') : undefined)
  if (skipped !== undefined) {
    if (typeof skipped !== 'string' || skipped.trim() === '')
      violated(`${name}: it is skipped without a reason`, name, 'write why')
    return { ...asked, skipped }
  }
  if (requestTarget(layer, () => '1') === undefined) {
    const fix = 'write the path as a string, or list it in { skip } with a reason'
    violated(`${name}: the path for requests is unknown`, name, fix)
    return asked
  }
  const params = left.flatMap((param) => {
    const ids = idsFor(options, name, param)
    const owners = Object.keys(users).filter((user) => (ids?.[user] ?? []).length > 0)
    if (ids !== undefined && owners.length > 1 && unknown[param] !== undefined) return [[param, ids] as const]
    const missing =
      owners.length > 1 ? `unknown: { ${param}: ... }` : `objects: { ${param}: ... } with ids of two users`
    const fix = `add ${missing}, or unchecked('${param}', 'why'), or list it in { skip }`
    const what = owners.length > 1 ? 'no unknown id' : owners.length === 1 ? `ids of ${owners.join()} only` : 'no ids'
    violated(`${name}: :${param} has ${what} and no reason`, name, fix)
    return []
  })
  return { ...asked, params, isAsked: params.length === left.length }
}

const askedMethods = ({ method, methods }: RoutedOperation): ReadonlyArray<string> =>
  method === 'ALL' ? ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] : [...methods].sort()

// Reading, writing, deleting; of the operations that delete, those of nested objects first
const askingOrder = ({ operation: { method, path } }: Asked): number =>
  method === 'GET' || method === 'HEAD' || method === 'OPTIONS'
    ? 0
    : method === 'DELETE' || method === 'ALL'
      ? 1e6 - String(path).split('/').length
      : 1

const valuesFor = ({ params }: Asked, user: string, at: number): Values =>
  Object.fromEntries(params.map(([name, { [user]: ids = [] }]) => [name, ids[at % ids.length] ?? '']))

const valuesOf = (one: Asked, user: string): ReadonlyArray<Values> => {
  const length = Math.min(MAX_IDS, Math.max(...one.params.map(([, ids]) => (ids[user] ?? []).length)))
  return Array.from({ length }, (_, at) => valuesFor(one, user, at))
}

/** The values that a user asks for: those of the user, but of the owner for the parameters in `foreign`, each alone and all together. */
const foreignValues = (one: Asked, user: string, owner: string) => {
  const own = valuesFor(one, user, 0)
  return valuesOf(one, owner).flatMap((others) => {
    // an id that two users share is no secret between them
    const foreign = one.params.flatMap(([name, ids]) => ((ids[user] ?? []).includes(others[name] ?? '') ? [] : [name]))
    const each = foreign.map((param) => ({ values: { ...own, [param]: others[param] ?? '' }, foreign: [param] }))
    return foreign.length > 1 ? [...each, { values: others, foreign }] : each
  })
}

/**
 * Asks every operation of an application that has path parameters, as each user, for the objects of the others. It resolves to the number of requests
 * to each operation. It rejects with `LawViolations`, which has a command line for each leak: an answer that differs from that for an
 * unknown id in its status, header fields or body. It asks with each method, HEAD, and several spellings of the id. A GET without
 * parameters leaks if its body has an id of another user, of at least six characters. So that nothing is left out unseen, these are
 * violations, too: a parameter without ids and without a reason, an own id that is not answered with a 2xx, and names that fit no
 * operation. Of each user, three ids of a parameter are used.
 *
 * Handlers run, and may change and delete the requested objects. Rejects with a TypeError for options that cannot work.
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
  const options = checkOptions('expectIsolated(app, options)', given, isolatedChecks)
  const { users, ignore = [], within = 5000 } = options
  if (!isApplication(app)) throw new TypeError('expectIsolated(app, options) takes a Koa application')
  if (Object.keys(users).length < 2) throw new TypeError('expectIsolated(app, { users }): name at least two users')
  const operations = routersOf(app)
    .flatMap((router) => operationsOf(router))
    .filter(({ functions }) => docsAmong(functions) === undefined)
  const violations: Violation[] = []
  const violated: Violated = (law, counterexample, fix) => void violations.push({ law, counterexample, fix })
  checkNames(options, operations, violated)
  const all = operations.map((operation) => askedOf(operation, options, violated))
  const ignored = new Set(ignore.map((name) => name.toLowerCase()))
  const served = await serveApplication(app, within)
  try {
    await askAll({ options, all, ignored, served, violated })
  } finally {
    await served.close()
  }
  throwViolations('an application', violations)
  return all.map(({ operation, requests, skipped }) => ({
    operation: operation.name,
    requests,
    ...(skipped !== undefined && { skipped }),
  }))
}

interface Isolation {
  readonly options: IsolatedOptions
  readonly all: ReadonlyArray<Asked>
  /** Fields of responses that are not compared. */
  readonly ignored: ReadonlySet<string>
  readonly served: Awaited<ReturnType<typeof serveApplication>>
  readonly violated: Violated
}

const askAll = async (self: Isolation): Promise<void> => {
  const known = self.all.filter(({ isAsked }) => isAsked)
  const isList = ({ operation }: Asked): boolean => parameterNames(operation.layer).length === 0
  const withObjects = known.filter((one) => !isList(one)).sort((one, other) => askingOrder(one) - askingOrder(other))
  for (const one of known) {
    if (isList(one) && one.operation.methods.includes('GET')) await askList(self, one, withObjects)
  }
  for (const one of withObjects) {
    await askForeign(self, one)
    await askOwn(self, one)
  }
}

const sendAs = async (
  { options: { users, bodies = {} }, served }: Isolation,
  one: Asked,
  user: string,
  method: string,
  spell: (param: string) => string,
) => {
  one.requests++
  const url = requestTarget(one.operation.layer, spell) ?? '/'
  const body = method === 'GET' || method === 'HEAD' ? undefined : bodies[one.operation.name]
  const type = typeof body === 'object' ? ([['Content-Type', 'application/json']] as const) : []
  const spec: SentRequest = {
    ...mergeRequests({ url, fields: type }, users[user] ?? {}, { method, url }),
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  }
  return { spec, answer: await served.ask(String(one.requests), spec) }
}

const askForeign = async (self: Isolation, one: Asked): Promise<void> => {
  const names = Object.keys(self.options.users)
  for (const user of names) {
    for (const owner of names.filter((other) => other !== user)) {
      for (const method of askedMethods(one.operation)) {
        for (const { values, foreign } of foreignValues(one, user, owner))
          await compareForeign(self, one, { user, owner, method }, values, foreign)
      }
    }
  }
}

const compareForeign = async (
  self: Isolation,
  one: Asked,
  { user, owner, method }: Readonly<Record<'user' | 'owner' | 'method', string>>,
  values: Values,
  replaced: ReadonlyArray<string>,
): Promise<void> => {
  const { unknown } = self.options
  const without = { ...values, ...Object.fromEntries(replaced.map((param) => [param, unknown[param] ?? ''])) }
  for (const [words, spell] of Object.entries(spellings)) {
    const ask = (of: Values) =>
      sendAs(self, one, user, method, (param) =>
        (replaced.includes(param) ? spell : encodeURIComponent)(of[param] ?? '1'),
      )
    const foreign = await ask(values)
    const missing = await ask(without)
    // a body is compared itself; of a body that is not sent, only the length is known, and the id may be a part of it
    const hasLength = method === 'HEAD' && foreign.spec.url?.length === missing.spec.url?.length
    const seen = ({ answer }: typeof foreign, of: Values) => {
      const ids = replaced.map((param) => of[param] ?? '')
      return comparable(answer, ids, spell, self.ignored, hasLength)
    }
    const parts = differing(seen(foreign, values), seen(missing, without))
    if (parts.length === 0) continue
    one.hasLeak = true
    const whose = `${replaced.map((param) => `:${param}`).join(' and ')} of ${owner}`
    return self.violated(
      `${one.operation.name}: ${method} as ${user} distinguishes ${whose} from an unknown id, ${words}`,
      `${shown(foreign)}\ninstead of the answer for an unknown id:\n${shown(missing)}\nwhat differs: ${parts.join(', ')}`,
      'look it up with owned(...), whose answer for both is the same, or list the operation in { skip } with a reason',
    )
  }
}

const askOwn = async (self: Isolation, one: Asked): Promise<void> => {
  const { name, method } = one.operation
  for (const user of one.hasLeak ? [] : Object.keys(self.options.users)) {
    if (one.params.some(([, ids]) => (ids[user] ?? []).length === 0)) continue
    for (const values of valuesOf(one, user)) {
      const sent = await sendAs(self, one, user, method === 'ALL' ? 'GET' : method, (param) =>
        encodeURIComponent(values[param] ?? '1'),
      )
      if (!(sent.answer instanceof Error) && sent.answer.status >= 200 && sent.answer.status < 300) continue
      self.violated(
        `${name}: an own id of ${user} is not answered with a 2xx`,
        shown(sent),
        !(sent.answer instanceof Error) && sent.answer.status === 401
          ? 'send the credential that it takes, beside others by mergeRequests(a, b), or list the operation in { skip } with a reason'
          : 'name ids that exist, and a body in { bodies } if it needs a body',
      )
    }
  }
}

const askList = async (self: Isolation, list: Asked, withObjects: ReadonlyArray<Asked>): Promise<void> => {
  const ids = withObjects.flatMap(({ params }) => params.map(([, one]) => one))
  for (const user of Object.keys(self.options.users)) {
    const sent = await sendAs(self, list, user, 'GET', () => '')
    if (sent.answer instanceof Error) continue
    const { body } = sent.answer
    const own = new Set(ids.flatMap((one) => one[user] ?? []))
    const others = ids.flatMap((one) => Object.values(one).flat()).filter((id) => id.length >= 6 && !own.has(id))
    const found = others.find((id) => hasWord(body, id))
    if (found === undefined) continue
    self.violated(
      `${list.operation.name}: as ${user}, it lists an id of another user: ${found}`,
      shown(sent),
      'scope the query by the user, or list the operation in { skip } with a reason',
    )
  }
}

// --- how ids are written, and which parts of an answer count

const percentEncoded = (value: string): string =>
  [...Buffer.from(value)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('')
const otherCase = (value: string): string => (value === value.toUpperCase() ? value.toLowerCase() : value.toUpperCase())

/** How an id can be written so that a careless look-up still finds it. */
const spellings: Readonly<Record<string, (value: string) => string>> = {
  'as it is': encodeURIComponent,
  'percent-encoded': percentEncoded,
  'percent-encoded twice': (value) => encodeURIComponent(percentEncoded(value)),
  'in the other case': (value) => encodeURIComponent(otherCase(value)),
  'with a blank behind it': (value) => `${encodeURIComponent(value)}%20`,
  'with a dot behind it': (value) => `${encodeURIComponent(value)}.`,
}

const mayDiffer =
  /^(?:date|connection|keep-alive|traceparent|server-timing|x-response-time|(?:x-)?(?:request|correlation|trace)-id|(?:x-)?ratelimit.*)$/

// The id of a request may be repeated. Of cookies, the names count, because a session that is prolonged has another time
const comparable = (
  answer: HttpResponse | Error,
  ids: ReadonlyArray<string>,
  spell: (value: string) => string,
  ignored: ReadonlySet<string>,
  hasLength: boolean,
): ReadonlyMap<string, string> => {
  if (answer instanceof Error) return new Map()
  const written = ids.flatMap((id) => [spell(id), percentEncoded(id), otherCase(id), id])
  const asked = written.filter((id) => id !== '')
  const plain = (text: string): string => asked.reduce((before, id) => before.replaceAll(id, '<id>'), text)
  const parts = new Map([
    ['the status', String(answer.status)],
    ['the body', plain(answer.body)],
  ])
  for (const [field, value] of answer.lines) {
    const name = field.toLowerCase()
    if (ignored.has(name) || mayDiffer.test(name) || (!hasLength && name === 'content-length')) continue
    const counted = name === 'set-cookie' ? (value.split('=')[0] ?? '') : plain(value)
    parts.set(name, `${parts.get(name) ?? ''}\n${counted}`)
  }
  return parts
}

/** The parts of an answer that differ: names of header fields, `the status`, `the body`. */
const differing = (one: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>): ReadonlyArray<string> =>
  [...new Set([...one.keys(), ...other.keys()])].filter((part) => one.get(part) !== other.get(part))

const shellQuoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

const curl = ({ method = 'GET', url = '/', fields = [], body }: SentRequest): string =>
  [
    method === 'HEAD' ? 'curl -I' : `curl -i -X ${method}`,
    `"$URL"${shellQuoted(url)}`,
    ...fields.map(([name, value]) => `-H ${shellQuoted(`${name}: ${value}`)}`),
    ...(body === undefined ? [] : [`-d ${shellQuoted(body)}`]),
  ].join(' ')

const shown = ({ spec, answer }: Awaited<ReturnType<typeof sendAs>>): string =>
  answer instanceof Error
    ? `${curl(spec)}\nno answer: ${answer.message}`
    : `${curl(spec)}\n${answer.status} ${answer.body.slice(0, 120)}`

// `order-1` is not in `order-10`
const hasWord = (text: string, word: string): boolean =>
  new RegExp(`(?<!\\w)${word.replace(/\W/g, '\\$&')}(?!\\w)`).test(text)
