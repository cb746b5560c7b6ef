/** Applications with a docs page, served for one test, and the parts of their pages. */
import type { Next } from 'koa'
import { appOf } from '../models/levels.js'
import { ask, listen } from '../servers/server.js'

/** The paths below `/docs`, and the document. */
export const docsPaths = [
  '/openapi.json',
  '/docs',
  '/docs/swagger-ui.css',
  '/docs/swagger-ui-bundle.js',
  '/docs/favicon-16x16.png',
  '/docs/favicon-32x32.png',
  '/docs/page.css',
  '/docs/page.js',
] as const

/** The part of a document that tests compare: `GET /path`, and its security. */
type Listed = Readonly<Record<string, ReadonlyArray<Readonly<Record<string, ReadonlyArray<string>>>>>>

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly security: Listed[string] }>>>>
}

/** What a document lists. */
export const listed = async (url: string): Promise<Listed> => {
  const { status, text } = await ask(url)
  if (status !== 200) throw new Error(`${url} answers ${status}`)
  const { paths } = JSON.parse(text) as Document
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, { security }]) => [`${method.toUpperCase()} ${path}`, security] as const),
  )
  return Object.fromEntries(operations)
}

/** Serves an application until the test has finished. */
export const serve = (...middleware: ReadonlyArray<(ctx: never, next: Next) => unknown>) => listen(appOf(...middleware))
