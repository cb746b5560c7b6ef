/**
 * `docs`: the docs page of a router, where a user enters credentials once and tries its operations, and the OpenAPI
 * document that the page and other tools read.
 *
 * It is made of operations like any other, so `withAuth` guards it, and none of them is in the document. It describes
 * the router as it is mounted; one that koa-mount mounts, which the router cannot see, needs `servers`. A plain router is known
 * by its path: where it is mounted without one, the document also describes its siblings there. An `apiApp` is known by marks.
 */
import { newRouter } from '../koa/newRouter.js'
import type { RouterInstance } from '../koa/routerTypes.js'
import { checkRouter } from '../koa/routers.js'
import { declareFactory } from '../core/hooks.js'
import { requireSwaggerUi } from './assets.js'
import type { OpenApiOptions } from './documentOptions.js'
import { addDocs } from './docsRoutes.js'
import type { DocsPageOptions } from './pageOptions.js'

/** What the docs page of a router is made of: the document's own options, and those of the page. */
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
