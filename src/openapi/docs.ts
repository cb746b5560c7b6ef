/**
 * `docs`: the docs page of a router, and its OpenAPI document. On the page, a user enters credentials once and tries
 * operations.
 *
 * It consists of operations, so `withAuth` guards it. None of them is in the document. The document describes the
 * router as it is mounted; if koa-mount mounts it, which the router cannot see, set `servers`. Operations of a plain
 * router are recognized by their path: if it is mounted without one, the document also describes its siblings. Those of
 * an `apiApp` have marks.
 */
import { newRouter } from '../koa/newRouter.js'
import type { RouterInstance } from '../koa/routerTypes.js'
import { checkRouter } from '../koa/routers.js'
import { declareFactory } from '../core/hooks.js'
import { requireSwaggerUi } from './assets.js'
import type { OpenApiOptions } from './documentOptions.js'
import { addDocs } from './docsRoutes.js'
import type { DocsPageOptions } from './pageOptions.js'

/** The options of a docs page and of its document. */
export interface DocsOptions extends OpenApiOptions, DocsPageOptions {}

/**
 * Returns middleware that serves the docs page of a router at `/docs`, and its document at `/openapi.json`. Mount it on the
 * application, or with `use` on that router or any other. Without `auth`, the router that it is mounted on decides, as for all
 * operations. On the application it is public.
 *
 * Throws a TypeError if `swagger-ui-dist` is not installed, and for options that cannot work.
 *
 * @example
 * import Koa from 'koa'
 * import Router from '@koa/router'
 * import { httpBasicAuth, httpBearer, withAuth } from 'koa-with-auth'
 * import { docs } from 'koa-with-auth/openapi'
 *
 * const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 * const router = new Router()
 * router.get('/me', withAuth(bearer), (ctx) => {
 *   ctx.body = ctx.request.auth.user
 * })
 *
 * const developers = httpBasicAuth({ authenticate: (_request, user, password) => user === 'dev' && password === 's3cret' })
 * const app = new Koa()
 * app.use(docs(router, { title: 'Users', version: '1.0.0', auth: developers }))
 * app.use(router.routes())
 */
export const docs = <S, C>(
  router: RouterInstance<S, C>,
  options: DocsOptions,
): ReturnType<RouterInstance['routes']> => {
  checkRouter('docs(router, options)', router)
  const own = newRouter()
  addDocs(own, router, { place: 'docs', options, folder: requireSwaggerUi('docs') })
  return own.routes()
}

declareFactory('docs', docs)
