/**
 * The six levels again, where a level can also add to what it inherits. The rule is a fold that knows nothing of
 * routers.
 *
 * Every level has a different key, in a header with its name, so that several can be sent together.
 */
import { also, apiKeyHeader, type Guard } from 'koa-with-auth'
import { canonical, guardOf, handler, levels, nested, type Level, type Middleware, type Order } from './levels.js'

export const additions = ['unset', 'auth', 'null', 'also'] as const
export type Addition = (typeof additions)[number]
export type Adding = Readonly<Record<Level, Addition>>

/** All 4^6. */
export const addings: ReadonlyArray<Adding> = levels.reduce<ReadonlyArray<Adding>>(
  (some, level) => some.flatMap((adding) => additions.map((addition) => ({ ...adding, [level]: addition }))),
  // Safe: the reduction adds every level
  [{} as Adding],
)

// -------------------------------------------------------------------------------------
// the rule
// -------------------------------------------------------------------------------------

/** The demand: the levels whose keys must be sent, in the order of the checks, and the principal with them. */
export interface Demanded {
  readonly keys: ReadonlyArray<Level>
  readonly principal: unknown
}

const anonymous: Demanded = { keys: [], principal: undefined }

/**
 * From the application to the operation: `auth` replaces, `null` opens, `also` adds. The decision of a router does not
 * count if the call that registers it decides, whatever that is: a second `withAuth` replaces the first.
 */
export const demandedBy = (adding: Adding): Demanded => {
  const decided = (registration: Level, own: Level): Level => (adding[registration] === 'unset' ? own : registration)
  const path: ReadonlyArray<Level> = [
    'application',
    decided('parent-registration', 'parent-router'),
    decided('child-registration', 'child-router'),
    'operation',
  ]
  return path.reduce<Demanded>((outer, level) => {
    switch (adding[level]) {
      case 'unset':
        return outer
      case 'null':
        return anonymous
      case 'auth':
        return { keys: [level], principal: level }
      case 'also':
        return { keys: [...outer.keys, level], principal: { inherited: outer.principal, own: level } }
    }
  }, anonymous)
}

// -------------------------------------------------------------------------------------
// the routers
// -------------------------------------------------------------------------------------

export const keyFor = (level: Level): string => `key-of-${level}`

/** Header fields with the right keys of these levels. The others are wrong. */
export const keysOf = (right: ReadonlyArray<Level>, wrong: ReadonlyArray<Level> = []): Record<string, string> =>
  Object.fromEntries([
    ...right.map((level) => [`x-${level}`, keyFor(level)] as const),
    ...wrong.map((level) => [`x-${level}`, 'wrong'] as const),
  ])

/** The line of `WWW-Authenticate` for the key of a level. */
export const offerOf = (level: Level): string => `ApiKey realm="${level}", in="header", name="X-${level}"`

const authFor = (level: Level) =>
  apiKeyHeader({
    realm: level,
    paramName: `X-${level}`,
    authenticate: (_request, key) => key === keyFor(level) && level,
  })
const keys = new Map(levels.map((level) => [level, guardOf(authFor(level))]))
const more = new Map(levels.map((level) => [level, guardOf(also(authFor(level)))]))
const open = guardOf(null)

const deciding = (adding: Adding, level: Level): Guard<unknown> | undefined =>
  ({ unset: undefined, auth: keys.get(level), null: open, also: more.get(level) })[adding[level]]

/** An application of three routers, under `/<id>`, with one operation whose calls are counted under `id`. */
export const buildAdding = (id: string, adding: Adding, order: Order = canonical): Middleware => {
  const own = deciding(adding, 'operation')
  return nested(
    id,
    order,
    (level) => (router) => deciding(adding, level)?.(router) ?? router,
    (router) => (own === undefined ? router.get('/o', handler(id)) : router.get('/o', own, handler(id))),
  )
}
