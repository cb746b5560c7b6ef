/**
 * `operation`: what OpenAPI cannot read off a route, said behind its path.
 *
 * It describes, and does nothing to a request. What guards the operation is not said here: that is read off its guard.
 */
import type { Next } from 'koa'
import type { OpenAPIV3_1 } from 'openapi-types'
import { checkOptions, declareFactory } from '../core/misuse.js'
import { aheadOfParams, operationMark } from '../core/marks.js'
import { notWrapped } from '../koa/notWrapped.js'

/** OpenAPI 3.1's Operation Object without `security`, which is read off the guard. */
export type OperationOptions = Omit<OpenAPIV3_1.OperationObject, 'security'> & {
  readonly security?: never
  /** Leaves the operation out of the document. */
  readonly undocumented?: boolean
  readonly [extension: `x-${string}`]: unknown
}

/** Middleware that describes its operation, and only goes on. */
export interface Described {
  (ctx: unknown, next: Next): Promise<unknown>
}

const kinds: Readonly<Record<string, string>> = {
  tags: 'a list',
  summary: 'a string',
  description: 'a string',
  externalDocs: 'an object',
  operationId: 'a string',
  parameters: 'a list',
  requestBody: 'an object',
  responses: 'an object',
  callbacks: 'an object',
  deprecated: 'true or false',
  servers: 'a list',
  undocumented: 'true or false',
}

const kindOf = (value: unknown): string =>
  Array.isArray(value)
    ? 'a list'
    : typeof value === 'string'
      ? 'a string'
      : typeof value === 'boolean'
        ? 'true or false'
        : typeof value === 'object' && value !== null
          ? 'an object'
          : 'something else'

/**
 * Describes the operation after whose path it is written, before `withAuth` or behind it: summary, parameters, request
 * body, responses. The document adds `security`, the parameters of the path, and the answers of the guard. TypeError for
 * what OpenAPI's Operation Object does not have, and for `security`.
 *
 * @example
 * import Router from '@koa/router'
 * import { httpBearer, operation, withAuth } from 'koa-with-auth'
 *
 * const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 * const router = new Router()
 *
 * router.get('/me', operation({ summary: 'Who is signed in', tags: ['users'] }), withAuth(bearer), (ctx) => {
 *   ctx.body = ctx.request.auth.user
 * })
 * router.get('/internal', operation({ undocumented: true }), withAuth(bearer), (ctx) => {
 *   ctx.body = 'not in the document'
 * })
 */
export const operation = (description: OperationOptions): Described => {
  if (typeof description === 'object' && description !== null && 'security' in description) {
    throw new TypeError(
      'operation({ security }): it is read off the guard of the operation; write withAuth(a) behind it',
    )
  }
  checkOptions('operation', withoutExtensions(description), Object.keys(kinds))
  for (const [name, value] of Object.entries(description)) {
    const kind = kinds[name]
    if (kind !== undefined && value !== undefined && kindOf(value) !== kind) {
      throw new TypeError(`operation({ ${name} }) must be ${kind}`)
    }
  }
  const described = notWrapped(
    Object.assign((_ctx: unknown, next: Next) => next(), {
      [operationMark]: description,
      // Middleware in front of a guard is wrapped where levels arrange a layer; what carries this stays what it is
      param: aheadOfParams,
    }),
  )
  refuseUse(described)
  return described
}

declareFactory('operation', operation)

/** Options without those whose name begins with `x-`, which OpenAPI leaves to everybody. */
export const withoutExtensions = (options: unknown): unknown =>
  typeof options !== 'object' || options === null || Array.isArray(options)
    ? options
    : Object.fromEntries(Object.entries(options).filter(([name]) => !name.startsWith('x-')))

// @koa/router's `use` looks for a router to mount, koa's for a name to log
const refuseUse = (described: object): void => {
  const refuse = (place: string) => ({
    get: (): never => {
      throw new TypeError(
        `${place}(operation({ ... })) describes nothing; write router.get(path, operation({ ... }), handler)`,
      )
    },
  })
  Object.defineProperties(described, { router: refuse('router.use'), _name: refuse('app.use') })
}

const isDescribed = (f: Function): f is Function & { readonly [operationMark]: OperationOptions } => operationMark in f

/** What the functions of a layer say about their operation. TypeError, naming `place`, where two of them do. */
export const descriptionAmong = (functions: ReadonlyArray<Function>, place: string): OperationOptions => {
  const [described, second] = functions.filter(isDescribed)
  if (second !== undefined) throw new TypeError(`${place}: operation({ ... }) is in it twice; remove one`)
  return described?.[operationMark] ?? {}
}
