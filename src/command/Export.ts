/** Which export of a module is audited, and its audit. */
import * as E from 'fp-ts/lib/Either.js'
import { readApplication, readRouter, type Audited } from '../audit/application.js'
import { isApplication, routerOf } from '../koa/layer.js'
import { isRouter } from '../koa/router.js'

interface Export {
  readonly name: string
  readonly value: unknown
}

/** The export of that name; without a name, the default export, or else the only export that can be audited. */
export const chosen = (namespace: object, name: string | undefined): E.Either<string, Export> => {
  const exports = namedExports(namespace)
  const names = [...exports.keys()].join(', ') || 'nothing'
  if (name !== undefined) {
    return exports.has(name)
      ? E.right({ name: `export ${name}`, value: exports.get(name) })
      : E.left(`has no export "${name}"; it exports ${names}`)
  }
  const own = exports.get('default')
  if (own !== undefined && (isAuditable(own) || typeof own === 'function')) {
    return E.right({ name: 'default export', value: own })
  }
  const named = [...exports].filter(([, value]) => isAuditable(value)).sort(([one], [other]) => (one < other ? -1 : 1))
  const [only] = named
  if (only === undefined) {
    return E.left(
      `exports no router, no apiApp, no Koa application and no function that makes one by default; it exports ${names}: choose with --export`,
    )
  }
  return named.length === 1
    ? E.right({ name: `export ${only[0]}`, value: only[1] })
    : E.left(`exports several that can be audited: ${named.map(([one]) => one).join(', ')}; choose with --export`)
}

// The default export of CommonJS contains all exports. If a compiler made it from an ES module, it contains a default
// export itself
const namedExports = (namespace: object): ReadonlyMap<string, unknown> => {
  const named = new Map<string, unknown>(Object.entries(namespace).filter(([name]) => name !== 'module.exports'))
  const own = named.get('default')
  if (typeof own !== 'object' || own === null || isAuditable(own)) return named
  const inner = Object.entries(own).filter(([name]) => name !== '__esModule')
  return new Map(
    [...named, ...inner].filter(([name, value]) => name !== '__esModule' && (name !== 'default' || value !== own)),
  )
}

const isAuditable = (u: unknown): boolean =>
  isRouter(u) || isApplication(u) || (typeof u === 'function' && routerOf(u) !== undefined)

/** Audits an export. A function is called, a promise awaited. Rejects with the error of the function. */
export const auditedOf = async ({ name, value }: Export): Promise<E.Either<string, Audited>> => {
  const made = await value
  if (typeof made !== 'function' || routerOf(made) !== undefined) return auditExport(name, made)
  if (/^class\b/.test(Function.prototype.toString.call(made))) {
    return E.left(`its ${name} is a class; export a router, an application, or a function that makes one`)
  }
  if (made.length > 0) {
    return E.left(
      `its ${name} is a function that takes ${made.length === 1 ? 'a parameter' : `${made.length} parameters`}; export a function without`,
    )
  }
  // Safe: it takes no parameter, and its result is checked
  const returned: unknown = await (made as () => unknown)()
  return auditExport(`${name}()`, returned)
}

const auditExport = (name: string, u: unknown): E.Either<string, Audited> => {
  if (isApplication(u)) {
    return E.fromNullable(
      `its ${name} is a Koa application that mounts no router with app.use(router.routes()), so it cannot be audited`,
    )(readApplication(u))
  }
  const router = typeof u === 'function' ? routerOf(u) : u
  if (!isRouter(router)) return E.left(`its ${name} is not a router of @koa/router, an apiApp or a Koa application`)
  return E.right(readRouter('audit', router))
}
