/**
 * The docs page, as HTML and header fields. They are the same for every request, and contain nothing of a request.
 *
 * The texts of the API's author are only in HTML text and attributes. There is no inline script, so nothing must be
 * escaped for one. All references are relative, so the page works after any prefix.
 */

/** The content of the page. */
export interface Page {
  readonly title: string
  readonly description?: string | undefined
  /** The path of the page under its router, such as `/docs`. */
  readonly path: string
  /** The path of the document, such as `/openapi.json`. */
  readonly documentPath: string
  readonly persistAuthorization: boolean
  /** Other origins that test calls go to. */
  readonly origins: ReadonlyArray<string>
}

// For element content and for attributes in double quotes
const escapeHtml = (text: string): string =>
  text.replace(/[&<>"'\u2028\u2029]/g, (character) => `&#${character.charCodeAt(0)};`)

/** A relative reference from a page at one path to another path, both without a slash at the end. */
export const relativeReference = (from: string, to: string): string => {
  const up = '../'.repeat(from.split('/').length - 2)
  return `${up === '' ? './' : up}${to.slice(1)}`
}

/** The page's HTML. */
export const htmlOf = ({ title, description, path, documentPath, persistAuthorization }: Page): string => {
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
    <div id="docs" data-document="${document}" data-persist-authorization="${persistAuthorization}"></div>
    <noscript>This page needs JavaScript. The description itself: <a href="${document}">${document}</a></noscript>
  </body>
</html>
`
}

/**
 * The header fields of the page. They allow nothing from elsewhere, no inline script, and no frame around the page.
 * Test calls go to its own origin, and to those of the servers that the document names.
 */
export const fieldsOf = ({ origins }: Page): Readonly<Record<string, string>> => ({
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    // the icons in Swagger UI's style sheet
    "img-src 'self' data:",
    ['connect-src', "'self'", ...origins].join(' '),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
})

/**
 * The origins of the servers in a document. A relative URL is the page's own origin, and one with variables is unknown.
 */
export const originsOf = (servers: ReadonlyArray<{ readonly url: string }>): ReadonlyArray<string> => [
  ...new Set(
    servers.flatMap(({ url }) => (/^https?:\/\/[^{}]+$/i.test(url) && URL.canParse(url) ? [new URL(url).origin] : [])),
  ),
]
