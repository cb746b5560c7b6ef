/** The paths of @koa/router 12 and 13 in OpenAPI: patterns of path-to-regexp 6, which later routers do not read. */
import { createRequire } from 'node:module'
import type Router from '@koa/router'
import { apiKeyHeader, withAuth } from 'koa-with-auth'
import { openApi } from 'koa-with-auth/openapi'
import { describe, expect, it } from 'vitest'

const key = apiKeyHeader({ authenticate: (_request, given) => given === 'k1' && { client: 'Acme' } })
const require = createRequire(import.meta.url)

describe.each(['koa-router-12', 'koa-router-13'])('%s', (name) => {
  // Safe: the parts of an older router that are used here are the same
  const Older = require(name) as typeof Router
  const documentOf = (path: string | RegExp, prefix?: string) => {
    const inner = new Older().get(path, (ctx) => void (ctx.body = 'ok'))
    const router = prefix === undefined ? inner : new Older().use(prefix, inner.routes())
    return openApi(withAuth(key)(router), { title: 'T', version: '1' })
  }

  it.each([
    { path: '/users/:id(\\d+)', expected: ['/users/{id}'] },
    { path: '/files/:rest*', expected: ['/files/{rest}', '/files'] },
    { path: '/mounted/:id(\\d+)', prefix: '/tenants/:tenant(\\w+)', expected: ['/tenants/{tenant}/mounted/{id}'] },
  ])('$path', ({ path, prefix, expected }) => {
    const document = documentOf(path, prefix)
    expect(Object.keys(document.paths ?? {})).toStrictEqual(expected)
    expect(JSON.stringify(document)).not.toContain('undescribed')
    for (const item of Object.values(document.paths ?? {})) {
      expect(item?.get).toMatchObject({ security: [{ [Object.keys(document.components!.securitySchemes!)[0]!]: [] }] })
    }
  })

  it('describes a regular expression separately, as for any router', () => {
    expect(documentOf(/^\/x/)).toMatchObject({ paths: {}, 'x-undescribed': [{ path: '/^\\/x/' }] })
  })
})
