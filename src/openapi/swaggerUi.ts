/** Where `swagger-ui-dist` is, and the files of the docs page. The page is made when it is asked for: `docsPage.ts`. */
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { unlessThrown } from '../core/data.js'

/** The files of the page. An exact list, not a folder: no part of a request becomes part of a path. */
export const pageFiles: ReadonlyArray<string> = [
  'swagger-ui.css',
  'swagger-ui-bundle.js',
  'favicon-16x16.png',
  'favicon-32x32.png',
  'page.css',
  'page.js',
]

/** The folder of the installed `swagger-ui-dist`, as the module at `from` finds it; `undefined` if there is none. */
export const findSwaggerUi = (from: string | URL = import.meta.url): string | undefined =>
  unlessThrown(() => dirname(createRequire(from).resolve('swagger-ui-dist/package.json')))

/** The folder of the installed `swagger-ui-dist`. Throws a TypeError that names the package if it is missing. */
export const requireSwaggerUi = (where: string, from?: string | URL): string => {
  const folder = findSwaggerUi(from)
  if (folder === undefined) {
    throw new TypeError(
      `${where}: the docs page of koa-with-auth/openapi needs swagger-ui-dist; install it: npm install swagger-ui-dist`,
    )
  }
  return folder
}

/** Loads at the first call and caches the result. A load that failed is tried again. */
export const loadOnce = <A>(load: () => Promise<A>): (() => Promise<A>) => {
  let loading: Promise<A> | undefined
  return () => {
    loading ??= load().catch((error: unknown) => {
      loading = undefined
      throw error
    })
    return loading
  }
}
