/** No response of this layer contains a credential that was sent, whatever the hook does with it (A-28, A-37, B-25). */
import { inspect } from 'node:util'
import Router from '@koa/router'
import { either as E, option as O } from 'fp-ts'
import createError from 'http-errors'
import fc from 'fast-check'
import Koa from 'koa'
import {
  apiKeyCookie,
  apiKeyHeader,
  apiKeyQuery,
  defaultErrorMapper,
  httpBasicAuth,
  httpBearer,
  withAuth,
  type Authenticator,
} from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { secret } from '../support/models/arbitraries.js'
import { mockRequest } from 'koa-with-auth/testing'
import { sendRaw } from '../support/servers/rawSocket.js'
import { serve } from '../support/servers/server.js'

type Hook = (credential: string) => unknown

// Hooks that reveal the credential, in every way in which a hook can fail
const carelessHooks: Readonly<Record<string, Hook>> = {
  refuses: () => false,
  none: () => O.none,
  left: (credential) => E.left(credential),
  leftError: (credential) => E.left(new Error(credential)),
  leftLater: async (credential) => E.left({ _tag: 'invalid token', credential }),
  throwsError: (credential) => {
    throw new Error(`bad credential ${credential}`)
  },
  throwsText: (credential) => {
    throw credential
  },
  rejects: (credential) => Promise.reject(new Error(credential)),
  throws401: (credential) => {
    throw createError(401, `bad credential ${credential}`, { headers: { 'X-Credential': credential } })
  },
  throws200: (credential) => {
    throw Object.assign(new Error(credential), { status: 200, expose: true, headers: { location: `/${credential}` } })
  },
  rejects503: (credential) => Promise.reject(createError(503, credential, { expose: true })),
  answersTask: (credential) => () => credential,
}

const kinds: Readonly<Record<string, (hook: Hook) => Authenticator<unknown>>> = {
  query: (hook) => apiKeyQuery({ authenticate: (_request, key) => hook(key) }),
  header: (hook) => apiKeyHeader({ authenticate: (_request, key) => hook(key) }),
  cookie: (hook) => apiKeyCookie({ authenticate: (_request, key) => hook(key) }),
  bearer: (hook) => httpBearer({ authenticate: (_request, token) => hook(token) }),
  basic: (hook) => httpBasicAuth({ authenticate: (_request, user, password) => hook(`${user}:${password}`) }),
}

const base64 = (text: string) => Buffer.from(text).toString('base64')

// In every place at once; `spoiled` makes it malformed for some kinds
const sentBy = (kind: string, credential: string, spoiled: string) => ({
  url: `/?key=${encodeURIComponent(credential + spoiled)}`,
  fields: [
    [
      'Authorization',
      `${kind === 'basic' ? `Basic ${base64(`${credential}:${credential}`)}` : `Bearer ${credential}`}${spoiled}`,
    ],
    ['key', credential + spoiled],
    ['Cookie', `key=${credential}${spoiled}`],
  ] as const,
})

const spoiled = fc.constantFrom('', '', ' ,', '"', '\u00ff')

const expectSilent = (text: string, credential: string) => {
  for (const trace of [credential, base64(`${credential}:${credential}`), base64(credential).replace(/=+$/, '')]) {
    expect(text).not.toContain(trace)
  }
}

describe('defaultErrorMapper', () => {
  it('A-37 makes no response that contains a credential, and only raised failures may contain one', async () => {
    await fc.assert(
      fc.asyncProperty(
        secret,
        spoiled,
        fc.constantFrom(...Object.entries(kinds)),
        fc.constantFrom(...Object.values(carelessHooks)),
        async (credential, spoiling, [name, kind], hook) => {
          const request = mockRequest(sentBy(name, credential, spoiling))
          const result = await kind(hook).evaluate(request)
          expect(E.isLeft(result)).toBe(true)
          if (E.isRight(result)) return
          expectSilent(JSON.stringify(defaultErrorMapper(result.left, request)), credential)
          if (result.left._tag !== 'raised') expectSilent(inspect(result.left, { depth: null }), credential)
        },
      ),
      { numRuns: 300 },
    )
  })
})

describe('responses over HTTP', () => {
  let handled = 0
  const paths: string[] = []
  const served = serve(() => {
    const router = new Router()
    for (const [name, kind] of Object.entries(kinds)) {
      for (const [way, hook] of Object.entries(carelessHooks)) {
        paths.push(`/${name}/${way}`)
        router.get(`/${name}/${way}`, withAuth(kind(hook)), () => {
          handled++
        })
      }
    }
    const app = new Koa()
    app.silent = true
    app.use(router.routes())
    return app
  })

  it('A-28 A-37 no byte of a response, headers included, is a credential that was sent', async () => {
    const statuses = new Set<unknown>()
    await fc.assert(
      fc.asyncProperty(secret, spoiled, async (credential, spoiling) => {
        const ask = async (path: string) => {
          const { url, fields } = sentBy(path.split('/')[1] ?? '', credential, spoiling)
          const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')
          const head = `GET ${path}${url.slice(1)} HTTP/1.1\r\nHost: api.example\r\nConnection: close\r\n`
          const { status, headers, body } = await sendRaw(served.port, `${head}${lines}\r\n`)
          expect([401, 500, 503]).toContain(status)
          statuses.add(status)
          expectSilent(JSON.stringify(headers) + body, credential)
        }
        await Promise.all(paths.map(ask))
      }),
      { numRuns: 12 },
    )
    expect(handled).toBe(0)
    // The hooks were reached in both ways: they refused, and they threw
    expect([...statuses]).toEqual(expect.arrayContaining([401, 500]))
  })
})
