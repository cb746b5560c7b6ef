/** koa-with-auth/openapi: the OpenAPI document of a router, and a page that shows it. */
export { cachedOpenApi, type SerializedDocument } from './document.js'
export { docs, type DocsOptions, type DocsPageOptions } from './docs.js'
export { openApi, type ApiDocument, type OpenApiOptions } from './document.js'
