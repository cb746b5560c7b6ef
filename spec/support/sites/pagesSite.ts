/** One application with a page for each way to sign in by the library's forms, for one test. Mails go into a list. */
import { randomBytes } from 'node:crypto'
import Router from '@koa/router'
import type { Context } from 'koa'
import { withAuth } from 'koa-with-auth'
import { hash } from 'koa-with-auth/passwords'
import type { SessionsOptions } from 'koa-with-auth/sessions'
import {
  begin,
  secondFactor,
  finish,
  linkPage,
  emailSignIn,
  passwordSignIn,
  passwordReset,
  emailVerification,
  type CodeFactor,
  type LinkMail,
} from 'koa-with-auth/sign-in'
import { taken } from '../runs/taken.js'
import { sessionsApp, strongKey, type User, type Visitor } from './sessionsApp.js'

let stored: Promise<string> | undefined

/** anna has a password, and the code of her second factor is always 1. `?redirects` lets a hook answer by itself. */
export const pagesSite = async ({
  away,
  ...options
}: Pick<SessionsOptions<User | undefined>, 'pages' | 'texts'> & { readonly away?: string } = {}) => {
  const own = await (stored ??= hash('anna-secret'))
  const mails: Array<LinkMail & { readonly code?: string }> = []
  const errors: unknown[] = []
  let hooks = 0
  const factor: CodeFactor = { method: 'own', verify: async (_user, typed) => typed === '1' }
  const site = await sessionsApp(undefined, {
    keys: [strongKey, randomBytes(32).toString('hex')],
    origin: 'https://shop.example',
    ...options,
    below: (app) => {
      app.on('error', (error: { expose?: boolean }) => error.expose !== true && errors.push(error))
      const user = { username: 'anna', isActive: true }
      const code = secondFactor({ factors: [factor], path: '/code' })
      const hook = (ctx: Context) => {
        hooks++
        if (ctx.querystring === 'redirects') ctx.redirect('/account')
        return user
      }
      const send = (mail: LinkMail) => void mails.push(mail)
      const accountOf = () => ({ id: 'anna', stamp: '' })
      const mail = emailSignIn({ path: '/mail/link', send })
      const reset = passwordReset({ path: '/reset/link', isGood: (typed) => typed.length >= 8, accountOf, send })
      const verify = emailVerification({ path: '/verify/link', accountOf, send })
      const password = passwordSignIn({
        accountOf: (name) => name === 'anna' && { user, hash: own },
        factors: () => code,
        idle: ({ remember }) => remember && 30 * 86_400_000,
      })
      const router = new Router()
      if (away !== undefined) router.get('/away', withAuth(null), (ctx) => ctx.redirect(away))
      const open = withAuth(null)
      for (const [path, run] of [
        ['/password', password],
        ['/mail', begin(mail)],
        ['/popup', begin(mail, { display: 'popup' })],
        ['/reset', begin(reset)],
        ['/verify', begin(verify)],
      ] as const) {
        router.get(path, open, run)
        router.post(path, open, run)
      }
      router.post('/code', open, finish(code, hook))
      for (const kind of [mail, reset, verify] as const) {
        const path = `/${kind.name}/link`
        router.get(path, open, linkPage(kind))
        router.post(path, open, kind === mail ? finish(mail, hook) : finish(kind === reset ? reset : verify, hook))
      }
      app.use(router.routes())
    },
  })
  const mail = () => taken(mails)
  const send = (visitor: Visitor, path: string, type: string, body: string, accept: string) =>
    visitor.ask(path, { method: 'POST', headers: { 'Content-Type': type, Accept: accept }, body })
  return { site, mails, errors, mail, send, hooks: () => hooks }
}
