/** The pages of a sign-in: none is stored, none sends a Referer, and none can be framed or load anything. */
import type { Context } from 'koa'

/** A string as the text or an attribute of HTML. */
export const escaped = (text: string): string => text.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`)

/** Answers with a page. `allowed` are the directives of its policy that allow something. */
export const respondPage = (ctx: Context, allowed: string, html: string): void => {
  ctx.set({
    'Cache-Control': 'no-store',
    'Referrer-Policy': 'no-referrer',
    'X-Content-Type-Options': 'nosniff',
    'Content-Security-Policy': `default-src 'none'; ${allowed}; frame-ancestors 'none'; base-uri 'none'`,
  })
  ctx.status = 200
  ctx.type = 'html'
  ctx.body = html
}
