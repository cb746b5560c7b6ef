/**
 * The documents of the examples, read by common OpenAPI tools; and a client that is made of one, against the running
 * example.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { RouterInstance } from '@koa/router'
import type { Client } from '@libsql/client'
import type { SecurityScheme } from 'koa-with-auth'
import { openApi, type ApiDocument } from 'koa-with-auth/openapi'
import type { OpenAPIV3_1 } from 'openapi-types'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { exampleApp } from '../../examples/api/app.js'
import { openDatabase } from '../../examples/api/database.js'
import { application } from '../../examples/app.js'
import { exampleFiles } from '../support/papers/examples.js'
import { invalidIn, lint, routersOf, typesOf } from '../support/papers/openapiTools.js'
import { ask, listen } from '../support/servers/server.js'
import { ownOptions, repository, typecheck } from '../support/projects/typecheck.js'

const keys = ['a signing key for tests, 32 characters']
const about = { title: 'Example', version: '1.0.0', license: { name: 'MIT', identifier: 'MIT' } }
const described = (router: RouterInstance) => openApi(router, about)

let database: Client
let example: Awaited<ReturnType<typeof listen>>
let document: ApiDocument
beforeAll(async () => {
  database = await openDatabase(':memory:')
  const app = exampleApp({ database, keys, allowedAddresses: '127.0.0.1' })
  // The session's cookie has the name that the application sets
  const incoming = new IncomingMessage(new Socket())
  const { request } = app.createContext(incoming, new ServerResponse(incoming))
  document = openApi(routersOf(app)[0]!, about, request)
  example = await listen(app)
})
afterAll(async () => {
  await example.close()
  database.close()
})

const small = async (): Promise<ReadonlyArray<readonly [string, ApiDocument]>> =>
  Promise.all(
    exampleFiles().map(async (file) => {
      const { href } = new URL(`../../examples/${file}`, import.meta.url)
      const { router } = (await import(/* @vite-ignore */ href)) as { router: RouterInstance }
      return [file, described(router)] as const
    }),
  )

// A plain function has no scheme, so it is in no security; the linter gets a list of these operations
const callablesIn = ({ paths }: ApiDocument) =>
  Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item ?? {}).flatMap(([method, one]) =>
      'security' in (one as OpenAPIV3_1.OperationObject) ? [] : [{ path, methods: [method.toUpperCase()] }],
    ),
  )

describe('the documents of all examples', () => {
  it('are those of every example file, of all in one, and of the example API', async () => {
    const [all] = routersOf(application(keys))
    const together = Object.keys(described(all!).paths)
    const apart = (await small()).flatMap(([, { paths }]) => Object.keys(paths).map((path) => `/examples${path}`))
    expect(together.length).toBeGreaterThan(20)
    expect([...new Set(apart)].sort()).toEqual([...together].sort())
    expect(Object.keys(document.paths)).toContain('/api/bearer')
  })

  it('are valid for @seriousme/openapi-schema-validator', async () => {
    const [all] = routersOf(application(keys))
    const documents = [...(await small()), ['app.ts', described(all!)], ['api/app.ts', document]] as const
    for (const [file, one] of documents) expect([file, await invalidIn(one)]).toEqual([file, undefined])
  })

  it('leave nothing undescribed', async () => {
    for (const [, one] of [...(await small()), ['', document] as const]) expect(one).not.toHaveProperty('x-undescribed')
  })

  // The small examples show only authentication, so they have no `operation({ ... })` with a summary
  it('have no error in the small examples for redocly lint', async () => {
    const [all] = routersOf(application(keys))
    const one = described(all!)
    const callables = callablesIn(one)
    expect(callables.map(({ path }) => path)).toEqual(expect.arrayContaining(['/examples/ipwhitelist']))
    const defined = { severity: 'error', exceptions: callables } as const
    const found = await lint(one, { 'operation-summary': 'off', 'security-defined': defined })
    expect(found.filter(({ severity }) => severity === 'error')).toEqual([])
    // Nothing is declared that is not used
    expect(found.filter(({ ruleId }) => ruleId === 'no-unused-components')).toEqual([])
  })

  it('have no error in the example API for redocly lint', async () => {
    const callables = callablesIn(document)
    expect(callables.map(({ path }) => path)).toEqual(['/api/ipwhitelist'])
    const found = await lint(document, { 'security-defined': { severity: 'error', exceptions: callables } })
    expect(found.filter(({ severity }) => severity === 'error')).toEqual([])
  })

  it('are really checked: validator and linter find what is wrong', async () => {
    const { info, openapi, servers } = document
    const wrong = { openapi, info, servers, paths: { '/{id}': { get: { responses: {} } } } } as OpenAPIV3_1.Document
    const rules = (await lint(wrong)).filter(({ severity }) => severity === 'error').map(({ ruleId }) => ruleId)
    expect(rules).toEqual(expect.arrayContaining(['path-parameters-defined', 'security-defined', 'operation-summary']))
    expect(await invalidIn({ ...wrong, paths: { x: {} } })).toBeDefined()
  })
})

// A client that a user of openapi-typescript and openapi-fetch would write
const program = `
import createClient from 'openapi-fetch'
import type { components, paths } from './example.js'

export type Problem = components['schemas']['Problem']

export const calls = (baseUrl: string, credential: (request: Request) => Request) => {
  const client = createClient<paths>({ baseUrl })
  client.use({ onRequest: ({ request }) => credential(request) })
  const text = { parseAs: 'text' } as const
  return {
    bearer: () => client.GET('/api/bearer', text),
    basic: () => client.GET('/api/basic', text),
    apiKeyQuery: () => client.GET('/api/apikey', text),
    apiKeyHeader: () => client.GET('/api/headerkey', text),
    cookie: () => client.GET('/api/cookiekey', text),
    listed: () => client.GET('/api/multiple', text),
    session: () => client.GET('/api/pets', text),
    write: () => client.POST('/api/pets', text),
    inherited: () => client.GET('/api/whoami', text),
  }
}

export const mistakes = (baseUrl: string) => {
  const client = createClient<paths>({ baseUrl })
  return [
    // @ts-expect-error there is no such path
    () => client.GET('/api/nothing'),
    // @ts-expect-error there is no such method
    () => client.PUT('/api/bearer'),
  ]
}

export const detailOf = async (baseUrl: string): Promise<string | undefined> => {
  const { error } = await createClient<paths>({ baseUrl }).GET('/api/bearer')
  return (error satisfies Problem | undefined)?.detail
}
`

interface Program {
  readonly calls: (url: string, credential: (request: Request) => Request) => Readonly<Record<string, () => Called>>
  readonly detailOf: (url: string) => Promise<string | undefined>
}
type Called = Promise<{ readonly data?: unknown; readonly error?: unknown; readonly response: Response }>

// Sends a credential where a scheme of the document says
const sentAs =
  (scheme: SecurityScheme, value: string) =>
  (request: Request): Request => {
    if (scheme.type === 'apiKey' && scheme.in === 'query') {
      const url = new URL(request.url)
      url.searchParams.set(scheme.name, value)
      return new Request(url, request)
    }
    const [name, text] =
      scheme.type !== 'apiKey'
        ? ['Authorization', value]
        : scheme.in === 'cookie'
          ? ['Cookie', `${scheme.name}=${value}`]
          : [scheme.name, value]
    request.headers.set(name, text)
    return request
  }

describe('openapi-typescript makes types of the example, and openapi-fetch calls it with them', () => {
  const folder = `${repository}spec/.generated/openapi-${process.pid}`
  let made: Program
  let mistakes: ReturnType<typeof typecheck>

  beforeAll(async () => {
    mkdirSync(folder, { recursive: true })
    writeFileSync(`${folder}/example.ts`, await typesOf(document))
    writeFileSync(`${folder}/program.ts`, program)
    // a client in a browser, so without the types of Node
    const options = { ...ownOptions(), types: [], lib: ['lib.es2023.d.ts', 'lib.dom.d.ts'] }
    mistakes = typecheck([`${folder}/program.ts`], options)
    made = (await import(/* @vite-ignore */ pathToFileURL(`${folder}/program.ts`).href)) as Program
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  const signIn = async (path: string) => {
    const body = new URLSearchParams({ username: 'anna', password: 'anna-secret' })
    return ask(`${example.url}${path}`, { method: 'POST', body })
  }
  const session = async () => {
    const cookies = (await signIn('/api/login')).headers.getSetCookie().map((line) => line.split(';')[0]!)
    // With the cookie of its signature
    return cookies.join('; ').replace(/^session=/, '')
  }
  const issued = async () => `Bearer ${(JSON.parse((await signIn('/api/token')).text) as { token: string }).token}`
  const credentials: Readonly<Record<string, readonly [path: string, value: string | (() => Promise<string>)]>> = {
    bearer: ['/api/bearer', 'Bearer supersecret'],
    basic: ['/api/basic', `Basic ${btoa('admin:secret')}`],
    apiKeyQuery: ['/api/apikey', 'supersecret'],
    apiKeyHeader: ['/api/headerkey', 'supersecret'],
    cookie: ['/api/cookiekey', 'supersecret'],
    listed: ['/api/multiple', 'supersecret'],
    session: ['/api/pets', session],
    write: ['/api/pets', session],
    inherited: ['/api/whoami', issued],
  }

  it('the program that uses them typechecks, and its mistakes are found', () => {
    expect(mistakes).toEqual([])
  })

  it.each(Object.entries(credentials))('%s: 2xx with its credential, and 401 without', async (name, [path, value]) => {
    const operation = document.paths[path]![name === 'write' ? 'post' : 'get']!
    const [required = ''] = Object.keys(operation.security![0]!)
    const scheme = document.components!.securitySchemes![required] as SecurityScheme
    const sent = typeof value === 'string' ? value : await value()
    const with_ = await made.calls(example.url, sentAs(scheme, sent))[name]!()
    expect([with_.response.status, with_.error]).toEqual([name === 'write' ? 201 : 200, undefined])

    const without = await made.calls(example.url, (request) => request)[name]!()
    expect([without.response.status, without.data]).toEqual([401, undefined])
    expect(without.response.headers.get('WWW-Authenticate')).not.toBeNull()
    expect(without.error).toMatchObject({ status: 401, detail: 'Unauthorized' })
  })

  it('the body of a 401 has a type', async () => {
    await expect(made.detailOf(example.url)).resolves.toBe('Unauthorized')
  })
})
