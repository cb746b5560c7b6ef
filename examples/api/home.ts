// The page at `/`: who is signed in, a form to sign in or out, and a link to the docs page. It needs no script. Its
// content policy has the hash of its style.
import { createHash } from 'node:crypto'
import Router from '@koa/router'
import * as E from 'fp-ts/lib/Either.js'
import { optional, sessionAuth, withAuth } from 'koa-with-auth'
import { type SessionUser } from 'koa-with-auth/sessions'
import type { Signing } from 'koa-with-auth/sessions'
import { users } from './database.js'
import { refuse, type signedInBy } from './signIn.js'

const style = `
  :root { color-scheme: light dark; font: 1.05rem/1.6 system-ui, sans-serif }
  body { max-width: 38rem; margin: 3rem auto; padding: 0 1.5rem }
  h1 { font-size: 1.8rem; line-height: 1.2 }
  h2 { font-size: 1.2rem; margin-top: 2.5rem }
  ul { padding-left: 1.2rem }
  section { padding: .5rem 1.4rem; border-radius: .9rem; background: light-dark(#eef3fb, #1d2430) }
  a { color: light-dark(#0b57d0, #8ab4f8) }
  .docs, button { display: inline-block; padding: .6rem 1.2rem; border: 0; border-radius: .4rem; font: inherit; font-weight: 600;
    text-decoration: none; color: light-dark(#fff, #062e6f); background: light-dark(#0b57d0, #a8c7fa); cursor: pointer }
  form { display: flex; flex-wrap: wrap; gap: .6rem; align-items: center; margin: 1rem 0 }
  input { font: inherit; padding: .5rem .7rem; border-radius: .4rem; border: 1px solid light-dark(#747775, #8e918f); flex: 1 1 10rem; min-width: 0 }
  code { font-size: .95em }
  section code { white-space: nowrap }
`

const escaped = (text: string): string => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)

const signInForm = `<form method="post" action="/sign-in">
      <input name="username" aria-label="User name" placeholder="anna" autocomplete="username" required>
      <input name="password" type="password" aria-label="Password" placeholder="anna-secret" autocomplete="current-password" required>
      <button>Sign in</button>
    </form>`

// What the browser can open with a link; other operations need a method or a body
const examples = [
  ['/bearer', 'a bearer token'],
  ['/basic', 'user and password: admin, secret'],
  ['/apikey?api_key=supersecret', 'a key in the query'],
  ['/headerkey', 'a key in a header'],
  ['/cookiekey', 'a key in a cookie'],
  ['/multiple?key=supersecret', 'either of two keys'],
  ['/ipwhitelist', 'known addresses only'],
  ['/protected', 'a session'],
  ['/levels/health', 'a public operation of a guarded router'],
  ['/levels/staff', 'what the router decides'],
  ['/levels/partner', 'what the operation decides'],
  ['/asynchronous/promise', 'a hook that waits: admin, secret'],
  ['/composing/name', 'authenticators made of others'],
  ['/signed', 'a kind of its own'],
  ['/stream', 'a response that ends with its credential'],
]

const items = (lines: ReadonlyArray<string>): string => lines.map((line) => `<li>${line}</li>`).join('\n      ')

const rightsOf = ({ superuser, staff, active }: (typeof users)[number]): string =>
  active === 0 ? ', inactive, so never let in' : superuser === 1 ? ', superuser' : staff === 1 ? ', of the staff' : ''

const userList = items(
  users.map((user) => `<b>${user.username}</b>${rightsOf(user)}: password <code>${user.username}-secret</code>`),
)
const exampleList = items(
  examples.map(([path, what]) => `<a href="/examples${path}"><code>/examples${path}</code></a> ${what}`),
)

const signOutForm = (username: string): string => `<form method="post" action="/sign-out">
      <span>Signed in as <b>${escaped(username)}</b></span> <button>Sign out</button>
    </form>`

const page = (user: SessionUser | undefined, alert = ''): string => `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <title>koa-with-auth: examples</title>
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <style>${style}</style>
  </head>
  <body>
    <h1>koa-with-auth: examples</h1>
    <p>Every kind of authenticator in one API. The docs page says what guards each operation, and tries it out:
      choose <b>Authorize</b>, enter a credential, and every test call carries it.</p>
    <p><a class="docs" href="/api/docs">Open the docs page</a></p>
    <section>
    ${alert === '' ? '' : `<p role="alert">${alert}</p>`}
    ${user === undefined ? signInForm : signOutForm(user.username)}
    <p>The users of this demonstration:</p>
    <ul>
      ${userList}
    </ul>
    </section>
    <p>For tools, the same as <a href="/api/openapi.json">OpenAPI 3.1</a>.</p>
    <h2>The small examples</h2>
    <p>One idea each. Without a credential most of them answer 401; the table in <code>examples/README.md</code> says what to send.</p>
    <ul>
      ${exampleList}
    </ul>
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
  readonly signedIn: ReturnType<typeof signedInBy>
}

/** Serves `/` and its forms. */
export const home = ({ signedIn, logIn, logOut }: HomeOptions): Router => {
  const router = new Router()
  router.get('/', withAuth(optional(sessionAuth())), (ctx) => {
    ctx.set(fields)
    ctx.type = 'html'
    ctx.body = page(ctx.request.auth, ctx.querystring === 'failed' ? 'Wrong user name or password.' : '')
  })
  router.post('/sign-in', withAuth(null), async (ctx) => {
    const user = await signedIn(ctx)
    if (E.isLeft(user) && user.left._tag !== 'invalid') {
      await refuse(ctx, user.left)
      if (user.left._tag !== 'throttled') return
      ctx.set(fields)
      ctx.type = 'html'
      ctx.body = page(undefined, 'Too many wrong passwords. Try again later.')
      return
    }
    if (E.isRight(user)) await logIn(ctx, user.right)
    ctx.status = 303
    ctx.redirect(E.isLeft(user) ? '/?failed' : '/')
  })
  router.post('/sign-out', withAuth(null), async (ctx) => {
    await logOut(ctx)
    ctx.status = 303
    ctx.redirect('/')
  })
  return router
}
