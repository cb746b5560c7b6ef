/** `docs` and `apiApp({ docs })`: mistakes are TypeErrors when they are written. */
import Router from '@koa/router'
import { apiApp, httpBasicAuth } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { docs } from '../../src/openapi/docs.js'
import { operationsOf } from '../../src/koa/operations.js'
import { docsPaths } from '../support/sites/docsSites.js'

const about = { title: 'Pets', version: '1.0.0' }

const mistakes = [
  ['an unknown option', { persistAuthorization: true }, /no option "persistAuthorization"; there are/],
  ['a path that is a pattern', { path: '/docs/:id' }, /\(\{ path \}\) must be a path/],
  ['a path without a slash', { path: 'docs' }, /\(\{ path \}\) must be a path/],
  ['a path with a trailing slash', { path: '/docs/' }, /\(\{ path \}\) must be a path/],
  ['the root path', { path: '/' }, /\(\{ path \}\) must be a path/],
  ['a path with ..', { path: '/../docs' }, /\(\{ path \}\) must be a path/],
  ['a path with markup', { path: '/"><script>' }, /\(\{ path \}\) must be a path/],
  ['a document path that is not a string', { documentPath: 1 }, /\(\{ documentPath \}\) must be a path/],
  ['one path for page and document', { path: '/Docs', documentPath: '/docs' }, /are equal/],
  ['auth: undefined', { auth: undefined }, /undefined/],
  ['a factory that was not called', { auth: httpBasicAuth }, /httpBasicAuth itself/],
  ['servers that are not a list', { servers: '/' }, /servers.* must be an array/],
  ['security schemes of the author', { components: { securitySchemes: {} } }, /come from the guards/],
] as const

describe('docs(router, options)', () => {
  it.each(mistakes)('is a TypeError for %s, as apiApp({ docs }) is', (_what, options, message) => {
    const page = () => docs(new Router(), { ...about, ...(options as object) })
    for (const make of [page, () => apiApp({ docs: options as never })]) {
      expect(make).toThrow(TypeError)
      expect(make).toThrow(message)
    }
  })

  it.each([
    ['no options', undefined, /docs takes an object/],
    ['no title', { version: '1.0.0' }, /docs\(\{ title \}\)/],
    ['no version', { title: 'Pets' }, /docs\(\{ version \}\)/],
  ])('is a TypeError for %s', (_what, options, message) => {
    expect(() => docs(new Router(), options as never)).toThrow(message)
  })

  it('is a TypeError for a value that is not a router', () => {
    expect(() => docs(new Router().routes() as never, about)).toThrow(/takes the router itself, not its routes\(\)/)
    expect(() => docs(undefined as never, about)).toThrow(TypeError)
  })

  it('has the operations of page, document and files, and can be mounted', () => {
    const router = new Router({ prefix: '/api' }).use(docs(new Router(), about))
    expect(operationsOf(router).map(({ path }) => path)).toEqual(docsPaths.map((path) => `/api${path}`))
  })
})

describe('apiApp({ docs })', () => {
  it.each([
    ['a string', 'yes', /apiApp\(\{ docs \}\) must be true, false or options/],
    ['null', null, /apiApp\(\{ docs \}\) must be true, false or options/],
    ['a list', [], /apiApp\(\{ docs \}\) must be true, false or options/],
    ['its own title', { title: 'Other' }, /the title is the application's; write apiApp\(\{ title, docs \}\)/],
    ['its own version', { version: '2' }, /the version is the application's/],
  ])('is a TypeError for %s', (_what, given, message) => {
    expect(() => apiApp({ docs: given as never })).toThrow(TypeError)
    expect(() => apiApp({ docs: given as never })).toThrow(message)
  })

  it('is on by default, and false removes its operations', () => {
    expect(operationsOf(apiApp()).map(({ path }) => path)).toContain('/docs')
    expect(operationsOf(apiApp({ docs: true })).map(({ path }) => path)).toContain('/openapi.json')
    expect(operationsOf(apiApp({ docs: false }))).toEqual([])
  })
})
