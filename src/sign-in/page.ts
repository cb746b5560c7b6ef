/** The pages of a sign-in: none is stored, none sends a Referer, and none can be framed or load anything. */
import type { Context } from 'koa'

/** A string as the text or an attribute of HTML. */
export const escaped = (text: string): string => text.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`)

/** How a page with a form looks: legible, light or dark as the system is, and as wide as a phone. */
export const style = [
  ':root{color-scheme:light dark;--main:light-dark(#0b57d0,#a8c7fa)}',
  '*{box-sizing:border-box}',
  'body{margin:0;font:1rem/1.5 system-ui,sans-serif;background:light-dark(#f6f7f9,#16181c);color:light-dark(#1b1d21,#e6e8eb)}',
  'main{width:min(26rem,100% - 2rem);margin:10vh auto;padding:1.5rem;border-radius:.75rem;background:light-dark(#fff,#202329);box-shadow:0 1px 4px rgb(0 0 0/.2)}',
  'h1{margin:0 0 1rem;font-size:1.5rem;line-height:1.2}p{margin:0 0 1rem}label{font-weight:600}',
  'input,button{width:100%;padding:.65rem .75rem;border:1px solid light-dark(#8a8f98,#80868f);border-radius:.4rem;font:inherit;color:inherit;background:0 0}',
  'button{border-color:var(--main);font-weight:600;color:light-dark(#fff,#062e6f);background:var(--main);cursor:pointer}',
  ':focus-visible{outline:3px solid var(--main);outline-offset:2px}',
].join('')

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
