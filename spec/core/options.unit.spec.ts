/** A hook that never reads the credential: a warning in development if its source shows it, and a law that finds it. */
import { runInThisContext } from 'node:vm'
import {
  apiKeyCookie,
  apiKeyHeader,
  apiKeyQuery,
  Challenge,
  authenticator,
  fromHeader,
  httpBasicAuth,
  httpBearer,
  withAuth,
} from 'koa-with-auth'
import { fromFunction } from 'koa-with-auth/fp'
import { checkAuthenticator } from 'koa-with-auth/testing/laws'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'

let warnings: Error[] = []
const keep = (warning: Error): void => void warnings.push(warning)
beforeEach(() => {
  warnings = []
  process.on('warning', keep)
})
afterEach(() => {
  process.off('warning', keep)
  vi.unstubAllEnvs()
})
/** The warnings while this ran. Node emits warnings a tick later. */
const warned = async (run: () => unknown, env = 'development'): Promise<ReadonlyArray<string>> => {
  vi.stubEnv('NODE_ENV', env)
  run()
  await new Promise(setImmediate)
  return warnings.filter(({ name }) => name === 'UnreadCredentialWarning').map(({ message }) => message)
}

const anna = { user: 'anna' }
const kind = { challenge: Challenge.make('Own'), ambient: false, extract: fromHeader('X-Own') }
const kinds = [
  { name: 'httpBearer', make: (authenticate: () => unknown) => httpBearer({ authenticate }) },
  { name: 'httpBasicAuth', make: (authenticate: () => unknown) => httpBasicAuth({ authenticate }) },
  { name: 'apiKeyHeader', make: (authenticate: () => unknown) => apiKeyHeader({ authenticate }) },
  { name: 'apiKeyCookie', make: (authenticate: () => unknown) => apiKeyCookie({ authenticate }) },
  { name: 'apiKeyQuery', make: (authenticate: () => unknown) => apiKeyQuery({ authenticate }) },
  { name: 'authenticator', make: (authenticate: () => unknown) => authenticator({ ...kind, authenticate }) },
]

describe.each(kinds)('$name', ({ name, make }) => {
  it('a hook without a parameter makes one warning in development', async () => {
    const hook = () => anna
    expect(await warned(() => [make(hook), make(hook)])).toStrictEqual([
      `${name}({ authenticate }) never reads the credential: it has no parameter, and is called with the request first, then with what the client sent; write (request, credential) => ...`,
    ])
  })

  it.each(['production', 'test'])('a hook without a parameter makes no warning if NODE_ENV is %j', async (env) => {
    expect(await warned(() => make(() => anna), env)).toStrictEqual([])
  })

  it.each([undefined, ''])(
    'a hook without a parameter makes a warning if NODE_ENV is %j, as newcomers leave it',
    async (env) => {
      vi.stubEnv('NODE_ENV', env)
      make(() => anna)
      await new Promise(setImmediate)
      expect(warnings.map((one) => one.name)).toStrictEqual(['UnreadCredentialWarning'])
    },
  )
})

describe('the warning about a hook', () => {
  const warningsOf = (hook: unknown) => warned(() => httpBearer({ authenticate: hook as () => unknown }))
  const one = (token: unknown) => ({ user: token })
  class Users {
    find(token: unknown) {
      return { user: token }
    }
  }

  it.each([
    { description: 'an arrow with one parameter', hook: one },
    { description: 'an async arrow', hook: async (token: unknown) => Promise.resolve({ user: token }) },
    { description: 'a function', hook: function find(token: unknown) { return { user: token } } }, // prettier-ignore
    { description: 'a method', hook: new Users().find },
    { description: 'a frozen function', hook: Object.freeze((token: unknown) => ({ user: token })) },
    { description: 'a function that destructures the request', hook: ({ ip }: { ip: string }) => ({ ip }) },
  ])('is made for $description', async ({ hook }) => {
    expect(await warningsOf(hook)).toStrictEqual([expect.stringContaining('it has one parameter')])
  })

  it.each([
    { first: 'username', hook: (username: unknown, password: string) => username === 'anna' && password === 's' },
    { first: 'name', hook: (name: unknown, password: string) => name === 'anna' && password === 's' },
    { first: 'fields', hook: (fields: unknown, request: unknown) => [fields, request] },
    { first: 'token', hook: (token: unknown, _request: unknown) => token === 's' },
    { first: 'apiKey', hook: async (apiKey: unknown, request = '') => apiKey === request },
    { first: 'accessToken', hook: function find(accessToken: unknown, _other: unknown) { return accessToken } }, // prettier-ignore
    { first: 'key', hook: { find(key: unknown, _other: unknown) { return key } }.find }, // prettier-ignore
  ])('is made if the first of several parameters is called $first', async ({ first, hook }) => {
    expect(await warningsOf(hook)).toStrictEqual([
      `httpBearer({ authenticate }) calls its first parameter ${first}, and is called with the request first, then with what the client sent; write (request, credential) => ...`,
    ])
  })

  it.each([
    { description: 'another name that begins alike', hook: (keyed: unknown, token: string) => [keyed, token] },
    { description: 'two parameters', hook: (_request: unknown, token: string) => ({ user: token }) },
    { description: 'a default value', hook: (_request: unknown, token = '') => ({ user: token }) },
    {
      description: 'a default value that is a call',
      hook: (_request: unknown, token = String('')) => ({ user: token }),
    },
    { description: 'a rest parameter', hook: (...given: unknown[]) => ({ given }) },
    // eslint-disable-next-line prefer-rest-params -- older compilers write this
    { description: 'arguments', hook: function () { return { given: Reflect.get(arguments, 1) } } }, // prettier-ignore
    // As a string, because the compiler of this file removes comments
    {
      description: 'a comment among the parameters',
      hook: runInThisContext('(_request /* :) */, token = "") => token'),
    },
    { description: 'a bound function', hook: one.bind(undefined) },
    { description: 'a proxy', hook: new Proxy(one, {}) },
    { description: 'a function of a test runner', hook: vi.fn() },
  ])('is not made for $description', async ({ hook }) => {
    expect(await warningsOf(hook)).toStrictEqual([])
  })
})

describe('no warning for a function of the request, which has no credential to read', () => {
  const local = ({ ip }: { ip: string }) => ip === '127.0.0.1' && anna
  it.each([
    { description: 'in withAuth', make: () => withAuth(local) },
    {
      description: 'in a list',
      make: () => withAuth([httpBearer({ authenticate: (_request, token) => token }), local]),
    },
    { description: 'in fromFunction', make: () => fromFunction(() => anna) },
  ])('$description', async ({ make }) => {
    expect(await warned(make)).toStrictEqual([])
  })
})

describe('checkAuthenticator finds a hook that does not read the credential', () => {
  const users = new Map([['supersecret', anna]])
  it.each([
    { description: '() => ({ user })', hook: () => anna, law: 'refuses wrong' },
    { description: '(token) => ({ user: token })', hook: (token: unknown) => ({ user: token }), law: 'refuses wrong' },
    {
      description: '(token) => users.get(token)',
      hook: (token: unknown) => users.get(token as string),
      law: 'lets in',
    },
  ])('$description', async ({ hook, law }) => {
    const error: unknown = await checkAuthenticator(httpBearer({ authenticate: hook }), {
      valid: ['supersecret'],
    }).catch((found: unknown) => found)
    expect(String(error)).toContain(law)
    expect(String(error)).toMatch(/\(request, credential\)|the second parameter of a hook/)
  })

  it('and finds nothing if the hook reads it', async () => {
    const right = httpBearer({ authenticate: (_request, token) => users.get(token) })
    await checkAuthenticator(right, { valid: ['supersecret'] })
  })
})
