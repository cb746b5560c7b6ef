/** The request field that a scheme reads (RFC 9110 §12.5.5). */
import type { SecurityScheme } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { fieldOf } from '../../src/core/Description.js'

const table: ReadonlyArray<{ description: string; input: SecurityScheme | undefined; expected: string | undefined }> = [
  {
    description: 'a query key is part of the URL',
    input: { type: 'apiKey', in: 'query', name: 'k' },
    expected: undefined,
  },
  { description: 'a header key', input: { type: 'apiKey', in: 'header', name: 'X-Key' }, expected: 'X-Key' },
  { description: 'a cookie key', input: { type: 'apiKey', in: 'cookie', name: 'k' }, expected: 'Cookie' },
  { description: 'Basic', input: { type: 'http', scheme: 'basic' }, expected: 'Authorization' },
  { description: 'Bearer', input: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' }, expected: 'Authorization' },
  { description: 'OAuth 2.0', input: { type: 'oauth2', flows: {} }, expected: 'Authorization' },
  { description: 'OpenID Connect', input: { type: 'openIdConnect', openIdConnectUrl: 'x' }, expected: 'Authorization' },
  { description: 'a client certificate is not a field', input: { type: 'mutualTLS' }, expected: '*' },
  { description: 'no scheme may read anything', input: undefined, expected: '*' },
]

describe('fieldOf', () => {
  it.each(table)('$description', ({ input, expected }) => {
    expect(fieldOf(input)).toBe(expected)
  })
})
