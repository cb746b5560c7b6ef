/** Webhooks: deliveries of other services, which sign them with a secret: entry point `koa-with-auth/webhooks`. */
export { webhook, type Webhook, type WebhookOptions, type WebhookSecrets } from './webhook.js'
export {
  github,
  shopify,
  slack,
  standardWebhooks,
  stripe,
  svix,
  webhookScheme,
  type SignedContent,
  type WebhookScheme,
  type WebhookSchemeOptions,
} from './schemes.js'
export { rawBody } from './rawBody.js'
