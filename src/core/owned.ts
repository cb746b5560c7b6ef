/**
 * `owned` and `unchecked`: the objects that the parameters of a path name, and their owners.
 *
 * A guard that only asks for the caller lets every user read the objects of all others (OWASP API1, broken object level
 * authorization). `owned` looks the object up after the caller is known, and lets in only callers who may access it. A missing
 * object and an object of another caller get the same answer, so no caller can find out which objects exist.
 */
import * as E from 'fp-ts/lib/Either.js'
import type { Request } from './Request.js'
import { is as isAuthError, refusedObject, stops, type AuthError } from './AuthError.js'
import { checkDemanding } from './authorize.js'
import { decideOf, wrapping, type Authenticator, type Halves } from './Authenticator.js'
import { constantFailure, noted, withChallenges, type Scoped } from './Description.js'
import { accept, evidenceOf, objectsOf, type Objects } from './Evidence.js'
import { showObjects, type Attempt, type Finding, type Finds } from './Exchange.js'
import { andThen, failureOf, fromLookup, isThenable, toPromise, type Evaluation, type Result } from './Result.js'
import { conditionName, functionOf } from './functionName.js'
import * as is from './checks.js'
import { checkOptions, declareCondition, declareFactories, type Check, type Checks } from './options.js'

/** The object in the result of `find`: everything falsy is not found. */
export type Found<R> = Exclude<Awaited<R>, false | 0 | 0n | '' | null | undefined | void>

/** A request with the objects that were found before, as `find` and `allow` get it. */
export type ObjectsRequest<O = unknown> = Request & { readonly objects: O & Objects }

/** How `owned` finds an object, and decides about access to it. `U` is the principal, `O` are the objects that were found before. */
export interface OwnedOptions<U, R, O = unknown> {
  /** The parameter of the path that names the object: `id` for `/notes/:id`. */
  readonly param: string
  /**
   * Returns the object, or nothing; a promise is awaited. It is called once for each request, after authentication, with the decoded
   * parameter. A query that is scoped by the user needs no `allow`.
   */
  readonly find: (id: string, principal: U, request: ObjectsRequest<O>) => R
  /** Returns whether the caller may access the object; a promise is awaited. Only `true` allows. Default: `true`. */
  readonly allow?:
    ((object: Found<R>, principal: U, request: ObjectsRequest<O>) => boolean | Promise<boolean>) | undefined
  /**
   * The status of the answer if there is such an object, but not for the caller. With 403, a caller finds out which objects exist.
   * Default 404.
   */
  readonly refuse?: 403 | 404 | undefined
  /** The name of `find` and `allow` in policy files, for functions with the same text, such as bound methods. */
  readonly name?: string | undefined
}

const parameterName = is.like(
  /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u,
  "must be the name of a path parameter, without the colon, such as 'id' for /notes/:id",
)

const ownedChecks: Checks<OwnedOptions<never, unknown>> = {
  param: parameterName,
  find: is.hook(3),
  allow: is.maybe(is.hook(3)),
  refuse: is.maybe(is.that((value) => value === 403 || value === 404, 'must be 403 or 404')),
  name: is.maybe(conditionName),
}

// The input of the first rule
const noObjects: Objects = Object.freeze(Object.create(null) as Objects)

/**
 * Looks up the object that a path parameter names, for a caller who is authenticated. Handlers find it in `ctx.request.objects`,
 * under its name. If `find` returns nothing, or `allow` does not return `true`, the failure is `notFound`, a 404; with `refuse: 403`
 * a refusal by `allow` is `insufficient`. If one of them throws, it is a 500; `AuthError.unavailable()` and `UnavailableError` are a
 * 503.
 *
 * Throws a TypeError for options that cannot work. A guard with it is a TypeError where the path has no such parameter.
 *
 * @example
 * import Router from '@koa/router'
 * import { httpBearer, owned, withAuth } from 'koa-with-auth'
 *
 * const user = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { name: 'anna' } })
 * const notes = new Map([['n1', { owner: 'anna', text: 'Buy milk' }]])
 * const note = owned('note', {
 *   param: 'id',
 *   find: (id, _user: { name: string }) => notes.get(id),
 *   allow: (note, user) => note.owner === user.name,
 * })
 *
 * const router = new Router()
 * router.get('/notes/:id', withAuth(user, note), (ctx) => {
 *   ctx.body = ctx.request.objects.note.text
 * })
 */
export const owned = <const N extends string, U, R, O = unknown>(
  name: N,
  options: OwnedOptions<U, R, O>,
): (<B extends U, P = unknown>(
  self: Authenticator<B> & Authenticator<U> & Finds<P> & Finds<O>,
) => Authenticator<B> & Finds<P & { readonly [K in N]: Found<R> }>) => {
  conditionName('owned(name)', name)
  // Safe: `checkOptions` reads the options, and calls none of them
  const given = checkOptions('owned(name, options)', options as unknown as OwnedOptions<never, unknown>, ownedChecks)
  const caller = `owned('${name}')(a)`
  const condition = (self: Authenticator<unknown>): Authenticator<unknown> =>
    wrapping(caller, self, (member) => {
      checkDemanding(caller, member.description)
      return finding(name, given, member)
    })
  // Safe: the principal does not change, and the object is the result of `find`
  return declareCondition('owned', condition) as unknown as ReturnType<typeof owned<N, U, R, O>>
}

type ObjectHook = (...given: readonly [unknown, unknown, Request]) => unknown

const finding = (name: string, options: OwnedOptions<never, unknown>, self: Authenticator<unknown>): Halves => {
  const { param, refuse = 404, name: label } = options
  // Safe, both: `self` puts their argument on the right
  const find = options.find as unknown as ObjectHook
  const allow = options.allow as unknown as ObjectHook | undefined
  const { description: member } = self
  const authenticate = decideOf(self)
  const words = [
    `${name} by :${param} find ${functionOf('find', find, label)}`,
    ...(allow === undefined ? [] : [`allow ${functionOf('allow', allow, label)}`]),
    ...(refuse === 403 ? ['refuse 403'] : []),
  ].join(' ')
  const description = noted<Scoped>(
    { _tag: 'Scoped', member, scopes: [], object: { name, param, refuse } },
    {
      decidedBy: words,
      functions: [[words, find], ...(allow === undefined ? [] : [[`allow of ${words}`, allow] as const])],
    },
  )
  const missing = constantFailure(description, refusedObject(name, 404))
  const forbidden = refuse === 404 ? missing : constantFailure(description, refusedObject(name, 403))
  const condition: ObjectCondition = { name, param, find, allow, member, missing, forbidden }
  return {
    description,
    decide: (attempt) =>
      andThen(authenticate(attempt), (result) => (E.isLeft(result) ? result : lookUp(condition, attempt, result))),
  }
}

interface ObjectCondition {
  readonly name: string
  readonly param: string
  readonly find: ObjectHook
  readonly allow: ObjectHook | undefined
  readonly member: Authenticator<unknown>['description']
  readonly missing: Result<never>
  readonly forbidden: Result<never>
}

const stopped = ({ member }: ObjectCondition, error: AuthError): Result<never> => E.left(withChallenges(member, error))

const raisedFailure = (self: ObjectCondition, error: unknown): Result<never> => stopped(self, failureThrown(error))

const lookUp = (self: ObjectCondition, attempt: Attempt, result: E.Right<unknown>): Evaluation<unknown> => {
  const id = pathParameter(attempt, self.param)
  if (id === undefined) return self.missing
  showObjects(attempt.request, objectsOf(attempt.objects, evidenceOf(result).objects) ?? noObjects)
  try {
    const found = fromLookup(self.find(id, result.right, attempt.request))
    return andThen(found, (settled) => judgeFound(self, attempt, result, settled))
  } catch (error) {
    return raisedFailure(self, error)
  }
}

const judgeFound = (
  self: ObjectCondition,
  attempt: Attempt,
  result: E.Right<unknown>,
  found: Result<unknown>,
): Evaluation<unknown> => {
  if (E.isLeft(found)) return stops(found.left) ? stopped(self, found.left) : self.missing
  if (self.allow === undefined) return judgeAnswer(self, attempt, result, found.right, true)
  try {
    const answer = self.allow(found.right, result.right, attempt.request)
    return isThenable(answer)
      ? toPromise(answer).then(
          (late) => judgeAnswer(self, attempt, result, found.right, late),
          (error: unknown) => raisedFailure(self, error),
        )
      : judgeAnswer(self, attempt, result, found.right, answer)
  } catch (error) {
    return raisedFailure(self, error)
  }
}

const judgeAnswer = (
  self: ObjectCondition,
  attempt: Attempt,
  result: E.Right<unknown>,
  object: unknown,
  answer: unknown,
): Result<unknown> => {
  if (answer === true) {
    const own = evidenceOf(result)
    const objects = { __proto__: null, ...own.objects, [self.name]: object }
    showObjects(attempt.request, objectsOf(attempt.objects, objects))
    return accept(result.right, { ...own, objects })
  }
  const verdict = fromLookup(answer)
  if (!(verdict instanceof Promise) && E.isLeft(verdict) && stops(verdict.left)) return stopped(self, verdict.left)
  if (attempt.whole.notes !== undefined) attempt.whole.notes.isFound = true
  return self.forbidden
}

// `throw AuthError.unavailable()` is an outage, too
const failureThrown = (error: unknown): AuthError => {
  try {
    if (isAuthError(error) && stops(error)) return error
  } catch {
    // a proxy, or a getter, that throws
  }
  return failureOf(error)
}

// Without a guard, those of the context count. A parameter that is optional in the path may be missing
const pathParameter = ({ parameters, request: { ctx } }: Attempt, param: string): string | undefined => {
  if (parameters !== undefined) return parameters[param]
  const params: unknown = ctx['params']
  if (typeof params !== 'object' || params === null) {
    throw new TypeError(`owned(...) ran outside of a route, so the parameter :${param} is unknown`)
  }
  const value: unknown = Object.hasOwn(params, param) ? Reflect.get(params, param) : undefined
  return typeof value === 'string' ? value : undefined
}

const reasonSentence: Check = (where, value) => {
  is.nonEmpty(where, value)
  is.like(/\S\s+\S/, "must be a sentence that says why, such as 'all members read all articles'")(where, value)
}

/**
 * Says that a path parameter names no object, or that the handler checks it, and why. It changes no decision. The audit and the
 * policy file have the reason. Throws a TypeError without a reason.
 *
 * @example
 * import Router from '@koa/router'
 * import { httpBearer, unchecked, withAuth } from 'koa-with-auth'
 *
 * const user = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { name: 'anna' } })
 * const router = new Router()
 * router.get('/articles/:slug', withAuth(user, unchecked('slug', 'all members read all articles')), (ctx) => {
 *   ctx.body = ctx.params.slug
 * })
 */
export const unchecked = (
  param: string,
  reason: string,
): (<B, P = unknown>(self: Authenticator<B> & Finds<P>) => Finding<Authenticator<B>, P>) => {
  // a group of a RegExp has a number
  if (typeof param !== 'string' || !/^\d+$/.test(param)) parameterName('unchecked(param)', param)
  reasonSentence('unchecked(param, reason): the reason', reason)
  const condition = (self: Authenticator<unknown>): Authenticator<unknown> =>
    wrapping('unchecked(param, reason)(a)', self, (member) => ({
      description: { _tag: 'Scoped', member: member.description, scopes: [], unchecked: { param, reason } },
      decide: decideOf(member),
    }))
  // Safe: it only adds to the description
  return declareCondition('unchecked', condition) as ReturnType<typeof unchecked>
}

declareFactories({ owned, unchecked })
