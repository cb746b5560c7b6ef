/** A site that receives deliveries at /hook, and what its handler saw. */
import { createHmac } from 'node:crypto'
import Router from '@koa/router'
import Koa, { type Context, type Middleware } from 'koa'
import { authSettings, withAuth, type Authenticator, type AuthSettings } from 'koa-with-auth'
import { github, webhook, type Webhook, type WebhookOptions } from 'koa-with-auth/webhooks'
import { listen } from '../servers/server.js'

export const SECRET = 'an-example-secret'

/** A signature of GitHub. */
export const githubSignature = (body: string | Buffer, secret = SECRET): string =>
  `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`

interface SiteOptions {
  readonly hook?: Partial<WebhookOptions>
  /** What is around the webhook, such as a list. */
  readonly around?: (hook: Authenticator<Webhook>) => unknown
  readonly settings?: AuthSettings
  readonly above?: ReadonlyArray<Middleware>
  readonly behind?: ReadonlyArray<Middleware>
  readonly handler?: (ctx: Context & { readonly request: { readonly auth: { readonly body: Buffer } } }) => unknown
}

/** Serves it until the test has finished. `handled`: the bodies that handlers saw. `send` sends a delivery of GitHub. */
export const webhookSite = async (options: SiteOptions = {}) => {
  const handled: Buffer[] = []
  const app = new Koa()
  for (const one of options.above ?? []) app.use(one)
  app.use(authSettings({ explain: true, ...options.settings }))
  const { around = (member) => member } = options
  // Safe: a test that puts something around it reads no principal
  const hook = around(webhook({ scheme: github, secrets: SECRET, ...options.hook })) as Authenticator<Webhook>
  const router = new Router()
  router.post('/hook', withAuth(hook), ...(options.behind ?? []), async (ctx) => {
    handled.push(ctx.request.auth.body)
    ctx.status = 204
    await options.handler?.(ctx)
  })
  app.use(router.routes())
  app.silent = true
  const served = await listen(app)
  const send = (body: string | Buffer, headers: Record<string, string> = {}) =>
    fetch(`${served.url}/hook`, {
      method: 'POST',
      body: body as string,
      headers: { 'X-Hub-Signature-256': githubSignature(body), ...headers },
    })
  const status = async (...sent: Parameters<typeof send>) => (await send(...sent)).status
  return { ...served, handled, send, status }
}
