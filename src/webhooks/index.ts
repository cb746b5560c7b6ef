/** Webhooks: deliveries of other services, which sign them with a secret: entry point `koa-with-auth/webhooks`. */
export { webhook, type Webhook, type WebhookOptions, type WebhookSecrets } from './webhook.js'
export { github, shopify, slack, standardWebhooks, stripe, svix, webhookScheme } from './schemes.js'
export type { SignedContent, WebhookScheme, WebhookSchemeOptions } from './schemes.js'
export { rawBody } from './rawBody.js'
