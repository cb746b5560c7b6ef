/**
 * The docs page and its files. The page is the same for every request, and contains nothing of a request. The texts of the API's
 * author are only in HTML text and attributes. There is no inline script, so nothing must be escaped for a script. All references are
 * relative, so the page works after any prefix.
 */
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { escapeHtml } from '../core/data.js'
import { digest } from '../crypto/secrets.js'
import { loadOnce, pageFiles } from './swaggerUi.js'

interface PageContent {
  readonly title: string
  readonly description?: string | undefined
  /** The path of the page under its router, such as `/docs`. */
  readonly path: string
  /** The path of the document, such as `/openapi.json`. */
  readonly documentPath: string
  /** The servers that the document names, which test calls go to. */
  readonly servers: ReadonlyArray<{ readonly url: string }>
}

/** A relative reference from a page at one path to another path, both without a slash at the end. */
const relativeReference = (from: string, to: string): string => {
  const up = '../'.repeat(from.split('/').length - 2)
  return `${up === '' ? './' : up}${to.slice(1)}`
}

const htmlOf = ({ title, description, path, documentPath }: PageContent): string => {
  const asset = (name: string) => escapeHtml(relativeReference(path, `${path}/${name}`))
  const document = escapeHtml(relativeReference(path, documentPath))
  const meta = description === undefined ? '' : `\n    <meta name="description" content="${escapeHtml(description)}">`
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <title>${escapeHtml(title)}</title>${meta}
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <link rel="icon" type="image/png" sizes="16x16" href="${asset('favicon-16x16.png')}">
    <link rel="icon" type="image/png" sizes="32x32" href="${asset('favicon-32x32.png')}">
    <link rel="stylesheet" href="${asset('swagger-ui.css')}">
    <link rel="stylesheet" href="${asset('page.css')}">
    <script defer src="${asset('swagger-ui-bundle.js')}"></script>
    <script defer src="${asset('page.js')}"></script>
  </head>
  <body>
    <div id="docs" data-document="${document}"></div>
    <noscript>This page needs JavaScript. The description itself: <a href="${document}">${document}</a></noscript>
  </body>
</html>
`
}

/** The header fields of the page: nothing from elsewhere, no inline script, no frame, and test calls only to servers of the document. */
const pageFields = ({ servers }: PageContent): Readonly<Record<string, string>> => ({
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    // the icons in Swagger UI's style sheet
    "img-src 'self' data:",
    ['connect-src', "'self'", ...originsOf(servers)].join(' '),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
})

/** The origins of a document's servers. A relative URL is the page's own origin, and one with variables is unknown. */
const originsOf = (servers: PageContent['servers']): ReadonlyArray<string> => [
  ...new Set(
    servers.flatMap(({ url }) => (/^https?:\/\/[^{}]+$/i.test(url) && URL.canParse(url) ? [new URL(url).origin] : [])),
  ),
]

export interface Asset {
  readonly type: string
  readonly content: Buffer
  /** A validator (RFC 9110 §8.8.3) that depends only on the content. */
  readonly etag: string
}

const types = { css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8', png: 'image/png' }

// All others are in swagger-ui-dist. The build puts their text here (`.ci/bundle.mjs`), so a bundled application needs no further file
const ownFiles: Readonly<Record<string, string>> = {
  'page.css': readFileSync(new URL('assets/page.css', import.meta.url), 'utf8'),
  'page.js': readFileSync(new URL('assets/page.js', import.meta.url), 'utf8'),
}

export const assetOf = (type: string, content: Buffer | string): Asset => {
  const bytes = Buffer.from(content)
  return { type, content: bytes, etag: `"${digest(bytes)}"` }
}

export const pageOf = (content: PageContent) => ({
  html: assetOf('text/html; charset=utf-8', htmlOf(content)),
  fields: pageFields(content),
})

/** The files of the page, in the order of their list; `load` rejects while a file cannot be read. */
export const assetsIn = (folder: string) =>
  pageFiles.map((name) => {
    // Safe: each name ends so
    const type = types[name.slice(name.lastIndexOf('.') + 1) as keyof typeof types]
    const load = loadOnce(async () => assetOf(type, ownFiles[name] ?? (await readFile(join(folder, name)))))
    return { name, load }
  })
