/**
 * A new router of @koa/router, which has a class for ES modules and another for CommonJS. This is a separate module,
 * because CommonJS needs other code for it (`.ci/modules.mjs`). So routers are of the class that the application
 * imports.
 */
import Router from '@koa/router'
import type { RouterInstance } from './router.js'

export const newRouter = (options: { readonly prefix?: string } = {}): RouterInstance => new Router(options)
