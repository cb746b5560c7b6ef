/** koa-with-auth/openapi: the OpenAPI document of a router, and a page that shows it. */
export { cachedOpenApi, type SerializedDocument } from './document.js'
export { docs, type DocsOptions, type DocsPageOptions } from './docs.js'
export { openApi, type ApiDocument } from './document.js'
export type { OpenApiOptions } from './documentOptions.js'
