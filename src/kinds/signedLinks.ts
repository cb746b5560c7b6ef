/**
 * Links that carry their own permission, and expire: downloads, invitations, unsubscribing by one click. Signed are the method,
 * the path, the whole query, the subject and the end. So a link is good for one address, as it was written.
 *
 * | the link                                                          | failure     | why         | status |
 * |-------------------------------------------------------------------|-------------|-------------|--------|
 * | has no signature                                                  | `absent`    |             | 401    |
 * | has a signature twice, or a signature that cannot be read         | `malformed` | `twice`, `syntax` | 401 |
 * | is for another method, path, query or subject; of another secret  | `invalid`   | `signature` | 401    |
 * | was valid, and has expired                                        | `expired`   | `expired`   | 401    |
 */
import * as E from 'fp-ts/lib/Either.js'
import type { Request } from '../core/Request.js'
import { because, expired, invalid, malformed, type AuthError } from '../core/AuthError.js'
import { kindOf, type Authenticator } from '../core/Authenticator.js'
import * as Challenge from '../core/Challenge.js'
import { documented, stringKindChecks, type StringKindOptions } from '../core/Description.js'
import { ageInWords } from '../core/Proof.js'
import { fromQuery } from '../core/RequestFields.js'
import { hasDots } from '../core/data.js'
import { constantTimeEqual, digest, mac } from '../crypto/secrets.js'
import * as is from '../core/checks.js'
import { checkOptions, declareFactory, token, type Checks } from '../core/options.js'

/** Whom a link was made for, and until when it is good. */
export interface SignedLink {
  /** A digest that identifies the link. A link counts once if its handler uses it: `oneTimeIds(store).use(id, lifetime)`. */
  readonly id: string
  readonly subject: string
  readonly expiresAt: Date
}

export interface SignedLinksOptions extends StringKindOptions {
  /** A secret of 32 random bytes or more, or several while one replaces another: the first signs, each is accepted. */
  readonly secret: string | Uint8Array | ReadonlyArray<string | Uint8Array>
  /** How long a link is good, in milliseconds. */
  readonly maxAge: number
  /** The name of the query parameter. Default `signed`. */
  readonly paramName?: string | undefined
}

/** An authenticator of links that also makes them. */
export interface SignedLinks extends Authenticator<SignedLink> {
  /**
   * Makes a link: the path as clients send it, prefixes of routers included, and its query with the signature at the end. Write the
   * origin before it. `method` is the method of the link; default GET, which is HEAD, too. Throws a TypeError for a path that
   * a client would change, such as a path with `..` or a blank: encode the parts that you put into it.
   */
  readonly url: (path: string, about: { readonly subject: string; readonly method?: string | undefined }) => string
}

const caller = 'signedLinks'

const checks: Checks<SignedLinksOptions> = {
  secret: (where, value) => is.secrets(where, [value].flat()),
  maxAge: is.milliseconds,
  paramName: is.maybe(is.nameLike(/^[\w-]+$/)),
  ...stringKindChecks,
}

/**
 * Makes links that are signed and expire, and admits callers who have such a link. The principal is the subject of the link. A link is no proof that
 * its holder is the subject: mails are forwarded. Addresses of links are written into logs, so a link should be short-lived, or do little.
 * A link that was changed in any way is a 401, also by another order of its query. Throws a TypeError for options that cannot work.
 *
 * @example
 * import Router from '@koa/router'
 * import { signedLinks, withAuth } from 'koa-with-auth'
 *
 * const links = signedLinks({ secret: 'a secret of at least 32 random bytes', maxAge: 600_000 })
 * const router = new Router()
 * router.get('/files/:id', withAuth(links), (ctx) => {
 *   ctx.body = `for ${ctx.request.auth.subject}`
 * })
 * const url = links.url('/files/7', { subject: 'anna' })
 * assert.match(url, /^\/files\/7\?signed=[\w.-]+$/)
 */
export const signedLinks = (options: SignedLinksOptions): SignedLinks => {
  const given = checkOptions(caller, options, checks)
  const { maxAge, paramName = 'signed', realm, maxLength } = given
  const keys = [given.secret].flat().map((one) => Buffer.from(one))
  const challenge = { ...(realm !== undefined && { realm }), in: 'query', name: paramName }
  const made: Authenticator<SignedLink> = kindOf({
    ...documented({ type: 'apiKey', in: 'query', name: paramName }, given),
    challenge: Challenge.make('ApiKey', challenge),
    ambient: false,
    extract: fromQuery(paramName),
    maxLength,
    authenticate: (request: Request, value: string) => judgeLink(keys, request, paramName, value),
    notes: { wrappers: [`links for ${ageInWords(maxAge)}`, `${keys.length} secrets`] },
  })
  const url: SignedLinks['url'] = (path, { subject, method = 'GET' }) => {
    const where = `${caller}(...).url(path, { subject, method })`
    if (typeof subject !== 'string' || subject === '')
      throw new TypeError(`${where}: subject must name the user of the link`)
    if (typeof method !== 'string' || !token.test(method))
      throw new TypeError(`${where}: method must be a method, such as GET`)
    const target = linkTarget(where, path, paramName)
    const head = `${Date.now() + Math.ceil(maxAge)}.${Buffer.from(subject).toString('base64url')}`
    const [newest = Buffer.alloc(0)] = keys
    return `${target}${paramName}=${head}.${signature(newest, method.toUpperCase(), target, head)}`
  }
  return Object.assign(made, { url })
}

declareFactory(caller, signedLinks)

// A JSON array, so that different parts never make the same string
const signature = (key: Buffer, method: string, target: string, head: string): string =>
  mac(key, JSON.stringify(['koa-with-auth/signed-link', method, target, head]))

// The path and the query as a client sends them, up to where the signature begins
const linkTarget = (where: string, path: string, paramName: string): string => {
  const isPath = typeof path === 'string' && /^\/(?!\/)[^\s\\#]*$/.test(path) && !hasDots(path)
  if (!isPath) throw new TypeError(`${where}: path must be one of this site as clients send it, such as "/files/7"`)
  const { pathname, search, searchParams } = new URL(path, 'http://localhost')
  if (searchParams.has(paramName)) throw new TypeError(`${where}: path must have no parameter ${paramName}`)
  return `${pathname}${search}${search === '' ? '?' : '&'}`
}

const form = /^((\d{1,16})\.([\w-]+))\.([\w-]{43})$/

const linkFailure = (error: AuthError, why: 'syntax' | 'signature' | 'expired') => E.left(because(error, why))

const unreadableLink = linkFailure(malformed, 'syntax')
const wrongLink = linkFailure(invalid, 'signature')
const expiredLink = linkFailure(expired, 'expired')

const judgeLink = (keys: ReadonlyArray<Buffer>, { originalUrl, method }: Request, paramName: string, value: string) => {
  const [, head = '', end, subject = '', sent = ''] = form.exec(value) ?? []
  if (end === undefined) return unreadableLink
  const asSent = `${paramName}=${value}`
  if (!originalUrl.endsWith(asSent)) return wrongLink
  const target = originalUrl.slice(0, -asSent.length)
  const about = method === 'HEAD' ? 'GET' : method
  // all of them, so that the time does not show which key it was
  const isGood = keys.map((key) => constantTimeEqual(signature(key, about, target, head), sent)).includes(true)
  if (!isGood) return wrongLink
  if (Date.now() >= Number(end)) return expiredLink
  const id = digest(sent)
  return { id, subject: Buffer.from(subject, 'base64url').toString('utf8'), expiresAt: new Date(Number(end)) }
}
