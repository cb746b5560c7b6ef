/** Random trees of routers, with decisions at every level. Their operations report that they ran. */
import Router, { type RouterInstance } from '@koa/router'
import fc from 'fast-check'
import { also, httpBearer, optional } from 'koa-with-auth'
import { lenient } from 'koa-with-auth/fp'
import { count, guardOf } from './levels.js'

const bearer = httpBearer({ authenticate: () => false })

/** The decision of a level. */
const guards = {
  unset: undefined,
  public: guardOf(null),
  bearer: guardOf(bearer),
  either: guardOf([bearer, () => false]),
  custom: guardOf(() => false),
  optional: guardOf(optional(bearer)),
  lenient: guardOf([bearer, lenient(bearer)]),
  also: guardOf(also(bearer)),
  alsoOptional: guardOf(also(optional(bearer))),
}
type Decision = keyof typeof guards

interface Operation {
  readonly method: 'get' | 'post' | 'all' | 'head'
  readonly path: string
  readonly decision: Decision
}

/** A router: its contents in the order of registration, and the decisions of its level and of its registration call. */
export interface Tree {
  readonly prefix: string
  readonly mountedAt: string
  readonly level: Decision
  readonly call: Decision
  readonly isFilledLate: boolean
  readonly content: ReadonlyArray<Operation | Tree>
}

const decided = fc.constantFrom(...(Object.keys(guards) as Decision[]))
// Mostly undecided, so that outer levels decide, or none
const decision = fc.oneof({ weight: 2, arbitrary: fc.constant<Decision>('unset') }, { weight: 1, arbitrary: decided })
const path = fc.constantFrom('/', '/x', '/y', '/X/', '/x/y', '/:id', '/:id/y', '/x{/:id}', '/*rest', '/:a-:b')
const prefix = fc.constantFrom('', '', '/x', '/:team')

export const { tree } = fc.letrec<{ tree: Tree; one: Operation | Tree }>((tie) => ({
  tree: fc.record({
    prefix,
    mountedAt: prefix,
    level: decision,
    call: decision,
    isFilledLate: fc.boolean(),
    content: fc.array(tie('one'), { minLength: 1, maxLength: 4 }),
  }),
  one: fc.oneof(
    { depthSize: 'small', maxDepth: 3, withCrossShrink: true },
    fc.record({ method: fc.constantFrom('get', 'get', 'post', 'all', 'head'), path, decision }),
    tie('tree'),
  ),
}))

/** Builds a tree. Its operations are called `0`, `1`, ... in the order of its stack, and count under these names. */
export const grow = (root: Tree): RouterInstance => {
  const built = growOne(root)
  for (const [id, layer] of built.stack.entries()) {
    const functions = [...layer.stack]
    // Safe: a handler, whatever the router's context
    layer.stack = [...functions.slice(0, -1), answering(String(id)) as never]
  }
  return built
}

const growOne = ({ prefix, level, call, isFilledLate, content }: Tree): RouterInstance => {
  const at = (decided: Decision) => (router: RouterInstance) => guards[decided]?.(router) ?? router
  const router = new Router(prefix === '' ? {} : { prefix })
  if (isFilledLate) return fill(at(call)(at(level)(router)), content)
  return at(call)(at(level)(fill(router, content)))
}

const fill = (router: RouterInstance, content: Tree['content']): RouterInstance => {
  for (const one of content) {
    if ('content' in one) {
      if (one.mountedAt === '') router.use(growOne(one).routes())
      else router.use(one.mountedAt, growOne(one).routes())
      continue
    }
    const guard = guards[one.decision]
    router[one.method](one.path, ...(guard === undefined ? [] : [guard as never]), () => {})
  }
  return router
}

const answering =
  (id: string) => (ctx: { status: number; body: unknown; set: (name: string, value: string) => void }) => {
    count(id)
    ctx.set('X-By', id)
    ctx.body = ''
    ctx.status = 200
  }
