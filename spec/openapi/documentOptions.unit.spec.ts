/** The parts of a document other than its operations, and options that are refused. */
import Router from '@koa/router'
import { httpBearer, withAuth } from 'koa-with-auth'
import { openApi, type OpenApiOptions } from 'koa-with-auth/openapi'
import { describe, expect, it } from 'vitest'

const bearer = httpBearer({ authenticate: () => ({ user: 'anna' }) })
const about = { title: 'Pets', version: '1.0.0' }

describe('options of openApi', () => {
  it('make the Info Object and the root; undefined ones are left out', () => {
    const options = {
      ...about,
      summary: 'All of them',
      description: 'Text',
      termsOfService: 'https://example.com/terms',
      contact: { name: 'Us' },
      license: { name: 'MIT', identifier: 'MIT' },
      servers: [{ url: 'https://api.example.com' }],
      tags: [{ name: 'pets' }],
      externalDocs: { url: 'https://example.com' },
      'x-logo': { url: '/logo.svg' },
    }
    const { title, version, summary, description, termsOfService, contact, license, ...root } = options
    const info = { title, version, summary, description, termsOfService, contact, license }
    expect(openApi(new Router(), options)).toEqual({ openapi: '3.1.0', info, ...root, paths: {} })
    const unset = { ...about, description: undefined, servers: undefined } as unknown as OpenApiOptions
    expect(openApi(new Router(), unset)).toEqual({ openapi: '3.1.0', info: about, servers: [{ url: '/' }], paths: {} })
  })

  it('components: those of the author are added to ours, and replace them', () => {
    const Problem = { type: 'object' as const, title: 'Own' }
    const components = { schemas: { Pet: { type: 'object' as const }, Problem }, examples: {} }
    const document = openApi(
      new Router().get('/', withAuth(bearer), () => {}),
      { ...about, components },
    )
    expect(document.components?.schemas).toEqual({ Problem, Pet: { type: 'object' } })
    expect(Object.keys(document.components ?? {})).toEqual(['securitySchemes', 'schemas', 'responses', 'headers'])
  })

  it.each([
    [undefined, 'openApi takes an object of options, not undefined'],
    [{ title: 'x' }, 'openApi({ version }) must be a string'],
    [{ version: '1' }, 'openApi({ title }) must be a string'],
    [{ ...about, tittle: 'x' }, 'openApi: no option "tittle"; there are title, summary, '],
    [{ ...about, security: [] }, 'openApi: no option "security"'],
    [{ ...about, servers: '/' }, 'openApi({ servers }) must be an array'],
    [{ ...about, components: 1 }, 'openApi({ components }) must be an object'],
    [
      { ...about, components: { securitySchemes: {} } },
      'openApi({ components: { securitySchemes } }): they come from the guards',
    ],
  ])('%j is a TypeError', (options, message) => {
    expect(() => openApi(new Router(), options as never)).toThrow(TypeError)
    expect(() => openApi(new Router(), options as never)).toThrow(message)
  })

  it('routes() instead of the router is a TypeError', () => {
    expect(() => openApi(new Router().routes() as never, about)).toThrow(
      new TypeError(
        'openApi(router, options) takes the router itself, not its routes(): write openApi(routes.router, options)',
      ),
    )
  })
})
