/**
 * The page on which a sign-in in a popup ends. It posts the return path to its opener, if that is of the same origin, and
 * closes itself. Nothing else is in it, so whoever gets the message learns nothing that the opener does not know.
 *
 * An opener of another origin cannot be asked for its origin: the browser throws. It gets nothing. The opener is missing if
 * a page on the way had the policy `Cross-Origin-Opener-Policy: same-origin`, or if the popup was opened with `noopener`.
 */
import { createHash } from 'node:crypto'
import type { Context } from 'koa'
import { escaped, respondPage } from './page.js'

// The same in every answer, so that the policy can name its hash
const script = `const path = document.querySelector('a').getAttribute('href')
const isOurs = (opener) => {
  try {
    return opener !== null && !opener.closed && opener.location.origin === location.origin
  } catch {
    return false
  }
}
if (isOurs(window.opener)) {
  window.opener.postMessage(path, location.origin)
  window.close()
} else location.replace(path)`

const allowed = `script-src 'sha256-${createHash('sha256').update(script).digest('base64')}'; form-action 'none'`

/** Answers with the page that leads the opener of a popup to a path of this origin. */
export const respondToOpener = (ctx: Context, path: string): void => {
  const to = escaped(path)
  respondPage(
    ctx,
    allowed,
    `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Signed in</title>
<noscript><meta http-equiv="refresh" content="0;url=${to}"></noscript>
</head><body><a href="${to}">Continue</a>
<script>${script}</script>
</body></html>
`,
  )
}
