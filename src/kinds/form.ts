/**
 * The fields of a form, or of a JSON object, as a credential: for a sign-in with a password.
 *
 * A body parser above must have read the body into `request.body`. The URL is never read, because URLs end up in logs and
 * histories. Any page can make a browser send a form, so one of another site is refused, before the hook is called.
 */
import * as E from 'fp-ts/lib/Either.js'
import * as O from 'fp-ts/lib/Option.js'
import type { Request } from '../core/Request.js'
import * as AuthErrors from '../core/AuthError.js'
import { kindOf, unreadBody, type Authenticator } from '../core/Authenticator.js'
import * as Challenge from '../core/Challenge.js'
import { isForged } from '../core/CrossOrigin.js'
import { MAX_FIELD_LENGTH, type KindOptions } from '../core/Description.js'
import type { PrincipalFromAnswer } from '../core/Result.js'
import { settingsOf } from '../core/Exchange.js'
import { deepFreeze, ownField, ownOrGetter } from '../core/data.js'
import * as is from '../core/checks.js'
import { checkOptions, declareFactory, type Check, type Checks } from '../core/options.js'

/** The fields of a form: each a string that is not empty, of at most 8192 characters. */
export type FormFields<F extends ReadonlyArray<string>> = { readonly [Name in F[number]]: string }

export interface FormAuthOptions<F extends ReadonlyArray<string>, R> extends Pick<KindOptions, 'realm' | 'schemeName'> {
  /** The names of the fields; all are required. */
  readonly fields: F
  /** Decides about the fields. Do the same work for an unknown user as for a wrong password. */
  readonly authenticate: (request: Request, fields: FormFields<F>) => R
}

// They are quoted in a challenge, separated by blanks
const fieldName = /^[\x21-\x7e]+$/

const checkFields: Check = (where, fields) => {
  if (!Array.isArray(fields) || fields.length === 0) {
    throw new TypeError(`${where} must be an array of the form's fields, such as ['email', 'password']`)
  }
  const seen = new Set<string>()
  for (const name of fields as ReadonlyArray<unknown>) {
    if (typeof name !== 'string' || !fieldName.test(name)) {
      throw new TypeError(`${where}: the name of a field must be printable ASCII without blanks, such as 'email'`)
    }
    if (seen.has(name)) throw new TypeError(`${where} names "${name}" twice`)
    seen.add(name)
  }
}

const checks: Checks<FormAuthOptions<ReadonlyArray<string>, unknown>> = {
  fields: checkFields,
  authenticate: is.hook(2),
  realm: is.maybe(is.realm),
  schemeName: is.maybe(is.schemeName),
}

/**
 * The fields of a form, or of a JSON object, that a body parser above has read (`@koa/bodyparser`, `koa-body`).
 *
 * Each field must be one string that is not empty, of at most 8192 characters, else the failure is `malformedForm`. A body
 * without any of the fields counts as `absent`, and so does a request without a body, so lists go on. A POST, PUT or PATCH
 * whose body nothing has parsed is `raised`: a 500 that names `bodyParser`. A request that another site caused is
 * `forgedForm`, and the hook is not called. OpenAPI lists the request body. Throws a TypeError for fields or a hook that cannot
 * work.
 *
 * A 401 must offer a challenge (RFC 9110 §11.6.1), and no scheme is registered for forms: it is `Form`, with the names of
 * the fields.
 *
 * @example
 * import { bodyParser } from '@koa/bodyparser'
 * import Router from '@koa/router'
 * import { constantTimeEqual, formAuth, withAuth } from 'koa-with-auth'
 *
 * const form = formAuth({
 *   fields: ['email', 'password'],
 *   authenticate: (_request, { email, password }) => constantTimeEqual(password, 's3cret') && { email },
 * })
 * const router = new Router()
 * router.post('/login', bodyParser(), withAuth(form), (ctx) => {
 *   ctx.body = `Welcome ${ctx.request.auth.email}`
 * })
 */
export const formAuth = <const F extends ReadonlyArray<string>, R>(
  options: FormAuthOptions<F, R>,
): Authenticator<PrincipalFromAnswer<R>> => {
  const { fields, authenticate, realm, schemeName } = checkOptions('formAuth', options, checks)
  const names = Object.freeze([...fields])
  const form = kindOf({
    challenge: Challenge.make('Form', { ...(realm !== undefined && { realm }), fields: names.join(' ') }),
    schemeName,
    ambient: true,
    extract: (request) => sentIn(request, names),
    // Safe, both: a string is malformed, so the hook gets an object with each of the fields
    authenticate: (request, sent) =>
      isForged(request, settingsOf(request)) ? forgedForm : authenticate(request, sent as FormFields<F>),
    leaf: { fields: names },
  })
  // Safe: `forgedForm` is no principal
  return form as Authenticator<PrincipalFromAnswer<R>>
}

declareFactory('formAuth', formAuth)

const forgedForm = deepFreeze(E.left(AuthErrors.forged))

// A value that no codec accepts
const malformedForm = O.some<''>('')

/** The fields of a request. None: its body has none of them, or it has no body. Throws if nothing has parsed the body. */
const sentIn = (request: Request, names: ReadonlyArray<string>): O.Option<Readonly<Record<string, string>> | ''> => {
  const body = ownOrGetter(request, 'body')
  if (body === undefined && hasUnreadBody(request)) {
    throw new Error('formAuth: nothing has parsed the body; mount bodyParser() of @koa/bodyparser before withAuth')
  }
  if (typeof body !== 'object' || body === null) return O.none
  const values = names.map((name) => ownField(body, name))
  if (values.every((value) => value === undefined)) {
    // a parser skipped it, such as multipart
    return Object.keys(body).length === 0 && hasUnreadBody(request) ? unreadBody : O.none
  }
  return values.every(isFormField)
    ? O.some(Object.freeze(Object.fromEntries(names.map((name, at) => [name, values[at]!]))))
    : malformedForm
}

const isFormField = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= MAX_FIELD_LENGTH && value.isWellFormed()

// Parsers read the bodies of these methods by default. In others, a body has no meaning (RFC 9110 §9.3)
const withBody: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH'])

// RFC 9112 §6.3: a request has a body if one of these fields says so
const hasUnreadBody = ({ method, headers }: Request): boolean =>
  withBody.has(method) && (headers['transfer-encoding'] !== undefined || !/^0*$/.test(headers['content-length'] ?? ''))
