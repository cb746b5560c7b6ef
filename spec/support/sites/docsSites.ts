/** Applications with a docs page, served for one test, and the parts of their pages. */
import Koa from 'koa'
import { afterEach } from 'vitest'
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

/** Serves applications until the end of each test. */
export const sites = () => {
  const closing: Array<() => Promise<void>> = []
  afterEach(async () => {
    for (const close of closing.splice(0)) await close()
  })
  return async (...middleware: ReadonlyArray<(ctx: never, next: Koa.Next) => unknown>) => {
    const app = new Koa()
    for (const one of middleware) app.use(one as Koa.Middleware)
    const served = await listen(app)
    closing.push(served.close)
    return served
  }
}
