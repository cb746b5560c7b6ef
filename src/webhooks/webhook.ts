/**
 * Webhooks: requests that another service sends, and signs with a secret. The signature is checked over the bytes of the body, before
 * any parser has seen them.
 *
 * | the mistake                                               | failure     | why         | status |
 * |-----------------------------------------------------------|-------------|-------------|--------|
 * | no signature                                              | `absent`    |             | 401    |
 * | a header twice, or not readable                           | `malformed` | `twice`, `syntax` | 401 |
 * | older than `tolerance`, or of the future                  | `invalid`   | `expired`, `not yet` | 401 |
 * | no secret for the request; no secret has made a signature | `invalid`   | `key`, `signature` | 401 |
 * | the same delivery is being handled                        | `raised`    | `replay`    | 409    |
 * | it was handled before                                     | `raised`    | `replay`    | 200, or 409 |
 * | the body is too long                                      | `raised`    |             | 413    |
 */
import * as E from 'fp-ts/lib/Either.js'
import type { Request } from '../core/Request.js'
import { because, invalid, malformed, raised, type AuthError, type Why } from '../core/AuthError.js'
import type { Result } from '../core/Result.js'
import { kindOf, type Authenticator } from '../core/Authenticator.js'
import * as Challenge from '../core/Challenge.js'
import { documented, kindChecks, type KindOptions } from '../core/Description.js'
import { fromHeader, linesFrom } from '../core/RequestFields.js'
import type { OneTimeIds } from '../core/OneTimeIds.js'
import { settingsOf } from '../core/Exchange.js'
import { answered, httpError, type Settings } from '../core/Settings.js'
import { functionName } from '../core/functionName.js'
import * as is from '../core/checks.js'
import { checkHook, checkOptions, declareFactory } from '../core/options.js'
import { takeOver } from './deliveries.js'
import { bytesOfBody, MAX_BODY } from './rawBody.js'
import { joinedParts, type Delivery, type WebhookKey, type WebhookScheme } from './schemes.js'

/** A delivery whose signature is good: the value of `ctx.request.auth`. */
export interface Webhook {
  /** The id, if the sender signs an id. */
  readonly id?: string
  /** The time of the signature, if the sender signs a time. */
  readonly at?: Date
  /** The bytes that were signed. */
  readonly body: Buffer
  /** The body as UTF-8. */
  readonly text: () => string
  /** The body as JSON. Throws an error that is answered with 400 if it is none. */
  readonly json: () => unknown
}

/** A secret, or several while a new secret replaces an old secret: each of them is accepted. */
export type WebhookSecrets = string | ReadonlyArray<string>

export interface WebhookOptions extends KindOptions {
  /** How the sender signs: `standardWebhooks`, `github`, `stripe`, `slack`, `shopify`, or the result of `webhookScheme`. */
  readonly scheme: WebhookScheme
  /** The secrets, or a function that finds those of a request. If it finds none, the answer is 401. */
  readonly secrets:
    | WebhookSecrets
    | ((request: Request) => WebhookSecrets | undefined | null | Promise<WebhookSecrets | undefined | null>)
  /** How old a delivery may be, in milliseconds. Default 300 000. A scheme without a time has none. */
  readonly tolerance?: number | undefined
  /** The longest body, in bytes. Default 1 MB (1 048 576). */
  readonly maxLength?: number | undefined
  /** Where deliveries are taken, so that each counts once, such as `oneTimeIds(store)` of `koa-with-auth/stores`. */
  readonly spent?: OneTimeIds | undefined
  /**
   * With `spent`: the answer to a delivery that was handled and comes again, because its 2xx was lost. `accept`: 200, so that the sender
   * is content, and the handler does not run. `refuse`: 409. Default `accept`. While its handler runs, the same delivery is a 409.
   */
  readonly repeated?: 'accept' | 'refuse' | undefined
}

const caller = 'webhook'

const checks = {
  scheme: is.withMethods(
    ['read', 'content', 'keyOf'],
    'pass standardWebhooks, github, stripe, slack or shopify, or the result of webhookScheme({ ... })',
  ),
  // `keysFrom` checks them
  secrets: is.unchecked,
  tolerance: is.maybe(is.milliseconds),
  maxLength: is.maybe(is.positive),
  repeated: is.maybe(is.oneOf('accept', 'refuse')),
  spent: is.maybe(is.withMethods(['use', 'release'], 'pass oneTimeIds(store) of koa-with-auth/stores')),
  ...kindChecks,
}

const TOLERANCE = 300_000

// The clock of a sender may be 5 s ahead, and its times are whole seconds
const AHEAD = 6000

// The store keeps a delivery that can always be replayed for a month, and an id for three days, because senders try again for as long
const MONTH = 30 * 86_400_000
const THREE_DAYS = 3 * 86_400_000

const checkSecrets = (where: string, given: unknown): ReadonlyArray<string> => {
  const list: ReadonlyArray<unknown> = Array.isArray(given) ? given : [given]
  if (list.length > 0 && list.every(is.isFilled)) return list
  throw new TypeError(`${where} must be a secret, or an array of secrets, and none of them empty`)
}

const keysFrom = ({ keyOf }: WebhookScheme, given: unknown): ReadonlyArray<WebhookKey> => {
  const where = `${caller}({ secrets })`
  return checkSecrets(where, given).map((secret) => keyOf(where, secret))
}

/**
 * Authenticates the deliveries of a sender by their signatures. It reads the body itself, once; a parser behind it gets the same bytes.
 * The principal is the delivery. With `spent`, a delivery counts once: while its handler runs, the same delivery is a 409, and after a 2xx it
 * is answered with 200 without running the handler. Throws a TypeError for options that cannot work.
 *
 * @example
 * import { memoryStore, oneTimeIds } from 'koa-with-auth/stores'
 * import { stripe, webhook } from 'koa-with-auth/webhooks'
 *
 * // behind withAuth(hook), `ctx.request.auth.json()` is made of the bytes that Stripe has signed
 * const hook = webhook({ scheme: stripe, secrets: 'whsec_example', spent: oneTimeIds(memoryStore()) })
 */
export const webhook = (options: WebhookOptions): Authenticator<Webhook> => {
  const given = checkOptions(caller, options, checks)
  const { scheme, secrets, maxLength = MAX_BODY, spent, repeated = 'accept', realm } = given
  if (spent === undefined && given.repeated !== undefined) {
    throw new TypeError(`${caller}({ repeated }) needs spent, which records the handled deliveries`)
  }
  if (scheme.isTimed === false && given.tolerance !== undefined) {
    throw new TypeError(`${caller}({ tolerance }): ${scheme.name} signs no time, so leave tolerance out`)
  }
  const { tolerance = TOLERANCE } = given
  const keysOf = keysFinder(scheme, secrets)
  // After that, it cannot be replayed: its time is good no longer, and a body that was late then has come, or is a 408
  const lifetimeOf = ({ id, at }: Delivery, { timeout }: Settings): number =>
    Math.max(id === undefined ? 0 : THREE_DAYS, at === undefined ? MONTH : tolerance + AHEAD + timeout)

  const judge = async (request: Request, value: string): Promise<unknown> => {
    const delivery = readDelivery(scheme, request, value)
    if (E.isLeft(delivery)) return delivery
    const { signatures, id, at } = delivery.right
    const age = at === undefined ? 0 : Date.now() - at.getTime()
    if (age > tolerance) return refused(invalid, 'expired')
    if (age < -AHEAD) return refused(invalid, 'not yet')
    const keys = await keysOf(request)
    if (keys === undefined) return refused(invalid, 'key')
    const body = await bytesOfBody(caller, request, maxLength)
    const content = joinedParts(scheme.content({ id, at, body, request }))
    const judged = keys.map((key) => key.hasSigned(content, signatures, request))
    // only `verify` of an application answers late
    const late = judged.filter((one) => typeof one !== 'boolean')
    if (!judged.includes(true) && !(await Promise.all(late)).includes(true)) return refused(invalid, 'signature')
    if (spent !== undefined) {
      // Under each secret, so that it is the same delivery while one replaces another
      const ids = keys.map((key) => `koa-with-auth/webhook ${key.digestOf(id === undefined ? content : `id ${id}`)}`)
      const lifetime = lifetimeOf(delivery.right, settingsOf(request))
      const taken = await takeOver(request, spent, ids, lifetime, repeated === 'accept')
      if (E.isLeft(taken)) return taken
      if (taken.right === 'handled') return refused(raised(answered({ status: 200 })), 'replay')
      if (taken.right === 'taken') return refused(raised(httpError(409, 'this delivery was taken before')), 'replay')
    }
    return principalOf(delivery.right, body)
  }

  const kind = kindOf<string | ReadonlyArray<string>, Promise<unknown>, string>({
    ...documented({ type: 'apiKey', in: 'header', name: scheme.header }, given),
    challenge: Challenge.make('Webhook', { ...(realm !== undefined && { realm }), header: scheme.header }),
    ambient: false,
    extract: fromHeader(scheme.header),
    authenticate: judge,
    leaf: { reads: scheme.reads, headers: scheme.reads, sender: scheme.sender },
    notes: {
      wrappers: webhookNotes(given),
      ...(typeof secrets === 'function' && { functions: [[functionName(secrets), secrets]] }),
    },
  })
  // Safe: it lets in the results of `principalOf`
  return kind as Authenticator<Webhook>
}

declareFactory(caller, webhook)

const refused = (error: AuthError, why: Why): Result<never> => E.left(because(error, why))

const webhookNotes = (given: WebhookOptions): ReadonlyArray<string> => {
  const { scheme, secrets, tolerance = TOLERANCE, maxLength = MAX_BODY, spent, repeated = 'accept' } = given
  return [
    `webhook ${scheme.name}`,
    typeof secrets === 'function'
      ? `secrets by ${functionName(secrets)}`
      : `${checkSecrets('', secrets).length} secrets`,
    ...(scheme.isTimed === false ? [] : [`tolerance ${tolerance} ms`]),
    `maxLength ${maxLength}`,
    ...(spent === undefined ? [] : ['counted once']),
    ...(repeated === 'accept' ? [] : ['repeated: refuse']),
  ]
}

// Reads the headers; a header that was sent twice is refused, whatever the scheme makes of it
const readDelivery = (scheme: WebhookScheme, request: Request, value: string): Result<Delivery> => {
  let isTwice = false
  const get = (name: string): string | undefined => {
    const [first, ...others] = linesFrom(name)(request)
    if (others.length === 0) return first
    isTwice = true
    return undefined
  }
  const delivery = scheme.read(value, get)
  if (isTwice) return refused(malformed, 'twice')
  const isReadable = delivery !== undefined && delivery.signatures.length > 0 && !Number.isNaN(delivery.at?.getTime())
  return isReadable ? E.right(delivery) : refused(malformed, 'syntax')
}

const keysFinder = (scheme: WebhookScheme, secrets: WebhookOptions['secrets']) => {
  if (typeof secrets !== 'function') {
    const keys = keysFrom(scheme, secrets)
    return () => keys
  }
  checkHook(`${caller}({ secrets })`, secrets, 1)
  return async (request: Request) => {
    const found = await secrets(request)
    const hasNone = found === undefined || found === null || (Array.isArray(found) && found.length === 0)
    return hasNone ? undefined : keysFrom(scheme, found)
  }
}

const principalOf = ({ id, at }: Delivery, body: Buffer): Webhook => {
  const text = (): string => body.toString('utf8')
  return {
    ...(id !== undefined && { id }),
    ...(at !== undefined && { at }),
    body,
    text,
    json: () => {
      try {
        return JSON.parse(text()) as unknown
      } catch {
        throw httpError(400, 'the body of the delivery is not JSON; for a form, new URLSearchParams(text())')
      }
    },
  }
}
