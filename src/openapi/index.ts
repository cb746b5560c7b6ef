/**
 * koa-with-auth/openapi: the OpenAPI document of a router, and a page that shows it.
 *
 * Reading guide: `document.ts` puts a document together. `security.ts` says what an operation requires. `docs.ts`
 * serves the document and the page. `operation`, which describes an
 * operation, is in `koa-with-auth`.
 */
export { cachedOpenApi, type SerializedDocument } from './document.js'
export { docs, type DocsOptions, type DocsPageOptions } from './docs.js'
export { openApi, type ApiDocument, type OpenApiOptions } from './document.js'
