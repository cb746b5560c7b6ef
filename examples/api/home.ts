// The page at `/`: who is signed in, a form to sign in or out, and the way to the docs page. It needs no script; its style is
// named in its policy by its hash.
import { createHash } from 'node:crypto'
import Router from '@koa/router'
import { optional, sessionAuth, withAuth, type SessionUser } from 'koa-with-auth'
import type { Signing } from 'koa-with-auth/sessions'
import { readForm, SignInForm } from './form.js'

const style = `
  :root { color-scheme: light dark; font: 1.05rem/1.6 system-ui, sans-serif }
  body { max-width: 38rem; margin: 12vh auto; padding: 0 1.5rem }
  h1 { font-size: 1.8rem; line-height: 1.2 }
  a { color: light-dark(#0b57d0, #8ab4f8) }
  .docs, button { display: inline-block; padding: .6rem 1.2rem; border: 0; border-radius: .4rem; font: inherit; font-weight: 600;
    text-decoration: none; color: light-dark(#fff, #062e6f); background: light-dark(#0b57d0, #a8c7fa); cursor: pointer }
  form { display: flex; flex-wrap: wrap; gap: .6rem; align-items: center; margin: 1.5rem 0 }
  input { font: inherit; padding: .5rem .7rem; border-radius: .4rem; border: 1px solid light-dark(#747775, #8e918f); width: 10rem }
  code { font-size: .95em }
`

const escaped = (text: string): string => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)

const signInForm = `<form method="post" action="/sign-in">
      <input name="username" aria-label="User name" placeholder="anna" autocomplete="username" required>
      <input name="password" type="password" aria-label="Password" placeholder="anna-secret" autocomplete="current-password" required>
      <button>Sign in</button>
    </form>`

const signOutForm = (username: string): string => `<form method="post" action="/sign-out">
      <span>Signed in as <b>${escaped(username)}</b></span> <button>Sign out</button>
    </form>`

const page = (user: SessionUser | undefined, failed: boolean): string => `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <title>koa-with-auth: examples</title>
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <style>${style}</style>
  </head>
  <body>
    <h1>koa-with-auth: examples</h1>
    <p>Every kind of authenticator in one API. The docs page tells what guards each operation, and tries it out:
      choose <b>Authorize</b>, enter a credential, and every test call carries it.</p>
    <p><a class="docs" href="/api/docs">Open the docs page</a></p>
    ${failed ? '<p role="alert">Wrong user name or password.</p>' : ''}
    ${user === undefined ? signInForm : signOutForm(user.username)}
    <p>For tools, the same as <a href="/api/openapi.json">OpenAPI 3.1</a>. The small examples answer below
      <code>/examples</code>; the table in <code>examples/README.md</code> says what to try.</p>
  </body>
</html>
`

const fields = {
  'Content-Security-Policy': [
    "default-src 'none'",
    `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join('; '),
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'same-origin',
}

interface HomeOptions extends Pick<Signing<SessionUser>, 'logIn' | 'logOut'> {
  readonly signIn: (username: string, password: string) => Promise<SessionUser | undefined>
}

/** Answers `/`, and the forms on it. */
export const home = ({ signIn, logIn, logOut }: HomeOptions): Router => {
  const router = new Router()
  router.get('/', withAuth(optional(sessionAuth())), (ctx) => {
    ctx.set(fields)
    ctx.type = 'html'
    ctx.body = page(ctx.request.auth, ctx.querystring === 'failed')
  })
  router.post('/sign-in', withAuth(null), async (ctx) => {
    const { username, password } = await readForm(ctx, SignInForm)
    const user = await signIn(username, password)
    if (user !== undefined) await logIn(ctx, user)
    ctx.status = 303
    ctx.redirect(user === undefined ? '/?failed' : '/')
  })
  router.post('/sign-out', withAuth(null), async (ctx) => {
    await logOut(ctx)
    ctx.status = 303
    ctx.redirect('/')
  })
  return router
}
