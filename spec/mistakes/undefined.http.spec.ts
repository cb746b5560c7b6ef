/**
 * An option that is `undefined` is the same as one that is left out, in every function with options: each uses what `checkOptions`
 * returns, and those that need the options as they were written are tried here.
 */
import { readdirSync, readFileSync } from 'node:fs'
import Router from '@koa/router'
import Koa from 'koa'
import {
  apiApp,
  AuthError,
  authSettings,
  httpBearer,
  operation,
  perFailure,
  UnavailableError,
  withAuth,
} from 'koa-with-auth'
import { cachedOpenApi, docs, openApi } from 'koa-with-auth/openapi'
import { sessions } from 'koa-with-auth/sessions'
import { begin, emailSignIn, passwordReset, passwordSignIn } from 'koa-with-auth/sign-in'
import { exchange, oauth2, oidc } from 'koa-with-auth/sign-in/oidc'
import { mergeRequests, mockRequest } from 'koa-with-auth/testing'
import { laws } from 'koa-with-auth/testing/laws'
import ts from 'typescript'
import { expect, it } from 'vitest'
import * as is from '../../src/core/checks.js'
import { checkOptions } from '../../src/core/options.js'
import { messageOf } from '../support/projects/mistakes.js'
import { repository } from '../support/projects/typecheck.js'
import { ask, listen } from '../support/servers/server.js'

const src = `${repository}src/`

it('checkOptions returns what is not undefined, and refuses an undefined option like one that is missing', () => {
  const checks = { size: is.positive, name: is.maybe(is.nonEmpty) }
  const checked = (options: object) => checkOptions('f', options as { size: number; name?: string }, checks)
  expect(Object.entries(checked({ name: undefined, size: 1 }))).toStrictEqual([['size', 1]])
  const [missing, undefinedOne] = [{}, { size: undefined }].map((options) => messageOf(() => checked(options)))
  expect(undefinedOne).toBe(missing)
})

it('every function uses the options that `checkOptions` returns, but for nine', () => {
  const unused: string[] = []
  let calls = 0
  for (const file of readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((one) => one.endsWith('.ts'))) {
    const source = ts.createSourceFile(file, readFileSync(src + file, 'utf8'), ts.ScriptTarget.Latest, true)
    const visit = (node: ts.Node): void => {
      if (ts.isCallExpression(node) && node.expression.getText() === 'checkOptions') {
        calls++
        if (ts.isExpressionStatement(node.parent)) unused.push(file)
      }
      ts.forEachChild(node, visit)
    }
    visit(source)
  }
  expect(calls).toBeGreaterThan(70)
  expect(unused.sort()).toStrictEqual(
    [
      // the documents have extensions, which the table does not know
      ...['openapi/docs.ts', 'openapi/document.ts', 'openapi/document.ts', 'openapi/operation.ts'],
      // parts of options, of which each member is required or is asked for its value alone
      ...['koa/settings.ts', 'sessions/Bearer.ts', 'sessions/Page.ts', 'sessions/SessionsOptions.ts'],
      ...['sign-in/passkeys/options.ts', 'sign-in/passwordSignIn.ts', 'testing/laws/mapper.ts'],
    ].sort(),
  )
})

type Options = Readonly<Record<string, unknown>>

interface Row {
  /** The required options, so that the others can be left out. */
  readonly base: Options
  /** Calls the function, and shows everything that its options can change. */
  readonly run: (options: never) => unknown
}

const bearer = httpBearer({ authenticate: (_request, token) => token === 'good' && { user: 'anna' } })
const handle = (ctx: Koa.Context) => {
  ctx.body = 'handled'
}
const plain = () => withAuth(bearer)(new Router()).get('/x', handle)
const titled = { title: 'T', version: '1' }

// All responses of an application that its options can change
const served = async <S, C>(app: Koa<S, C>, paths: ReadonlyArray<string>) => {
  const { url } = await listen(app.on('error', () => {}))
  const answers = []
  for (const path of paths) {
    for (const headers of [{}, { Authorization: 'Bearer good' }]) {
      const { status, challenge, text } = await ask(url + path, { headers })
      answers.push([path, status, challenge, text])
    }
  }
  return answers
}
const ofNothing: Options = {}
const keyed = () => new Koa({ keys: ['a signing key of at least 32 bytes, for tests'] })
const loadUser = (username: string) => ({ username })

const rows: Readonly<Record<string, Row>> = {
  perFailure: {
    base: ofNothing,
    run: (mappers: never) =>
      [AuthError.absent, AuthError.forged, AuthError.unavailable(1), AuthError.throttled(1)].map((error) =>
        perFailure(mappers)(error, mockRequest()),
      ),
  },
  'events of authSettings': {
    base: { subject: () => 'anna' },
    run: (events: never) => typeof authSettings({ events }),
  },
  apiApp: {
    base: ofNothing,
    run: (options: never) => {
      const api = apiApp(options)
      api.get('/x', withAuth(bearer), handle)
      api.get('/thrown', () => Promise.reject(new Error('thrown')))
      return served(new Koa().use(api.routes()), ['/x', '/docs', '/openapi.json', '/thrown'])
    },
  },
  'docs of apiApp': {
    base: ofNothing,
    run: (page: never) => served(new Koa().use(apiApp({ docs: page }).routes()), ['/docs', '/openapi.json']),
  },
  openApi: { base: titled, run: (options: never) => JSON.stringify(openApi(plain(), options)) },
  cachedOpenApi: { base: titled, run: (options: never) => cachedOpenApi(plain(), options)(mockRequest()) },
  docs: {
    base: titled,
    run: (options: never) => served(new Koa().use(docs(plain(), options)), ['/docs', '/openapi.json']),
  },
  operation: {
    base: ofNothing,
    run: (options: never) =>
      JSON.stringify(openApi(new Router().get('/x', operation(options), withAuth(bearer), handle), titled)),
  },
  'bearer of sessions': {
    base: ofNothing,
    run: (given: never) => Object.keys(sessions(keyed(), { loadUser, bearer: given })).sort(),
  },
  'laws.errorMapper': { base: ofNothing, run: async (o: never) => [await laws.errorMapper(perFailure({}), o).check()] },
}

const called = async (row: Row, options: Options): Promise<unknown> => row.run(options as never)

const mistake = (row: Row, options: Options): Promise<string> =>
  called(row, options).then(
    () => 'nothing was refused',
    (error: unknown) => (error instanceof TypeError ? error.message : String(error)),
  )

// The names come from the error for an unknown option, so none is forgotten; `auth` is the exception
const namesOf = async (row: Row): Promise<ReadonlyArray<string>> => {
  const [, names = ''] = / there are (.*)$/.exec(await mistake(row, { ...row.base, nonsense: 1 })) ?? []
  return names.split(', ').filter((name) => name !== '' && name !== 'auth')
}

it.each(Object.entries(rows))(
  '%s: an option that is undefined is the same as one that is left out',
  async (_name, row) => {
    const names = await namesOf(row)
    expect(names).not.toStrictEqual([])
    expect(names).toEqual(expect.arrayContaining(Object.keys(row.base)))
    const without = await called(row, row.base)
    for (const name of names.filter((one) => !(one in row.base))) {
      expect(await called(row, { ...row.base, [name]: undefined }), name).toStrictEqual(without)
    }
    for (const name of names.filter((one) => one in row.base)) {
      const { [name]: _, ...rest } = row.base
      const message = await mistake(row, rest)
      expect(message, name).not.toBe('nothing was refused')
      expect(await mistake(row, { ...row.base, [name]: undefined }), name).toBe(message)
    }
  },
)

it('an UnavailableError without retryAfter equals one whose retryAfter is undefined', () => {
  const [one, other] = [new UnavailableError('x', {}), new UnavailableError('x', { retryAfter: undefined })]
  expect(Object.keys(other)).toStrictEqual(Object.keys(one))
})

it('an undefined field of a request that is merged replaces nothing', () => {
  const merged = mergeRequests({ method: 'POST', url: '/a' }, { method: undefined, url: undefined, fields: undefined })
  expect(merged).toStrictEqual({ method: 'POST', url: '/a' })
})

it('an undefined field of an operation is not in the document', () => {
  const router = new Router()
  router.get('/', operation({ summary: undefined, tags: ['a'], requestBody: undefined }), () => {})
  const described = openApi(router, { ...titled, description: undefined, tags: undefined })
  expect(Object.keys(described.paths['/']?.get ?? {}).sort()).toStrictEqual(['responses', 'security', 'tags'])
  expect(Object.keys(described)).not.toContain('tags')
  expect(Object.keys(described.info).sort()).toStrictEqual(['title', 'version'])
})

it.each([
  ['apiApp', () => apiApp({ auth: undefined } as never)],
  ['docs', () => docs(plain(), { ...titled, auth: undefined } as never)],
  ['docs of apiApp', () => apiApp({ docs: { auth: undefined } } as never)],
])('%s: `auth: undefined` is a TypeError, never public', (_name, make) => {
  expect(make).toThrow(TypeError)
  expect(make).toThrow(/undefined(?: \})?\): is it imported before it is defined/)
})

// --- options of a sign-in without which less is checked

const client = { id: 'shop', secret: 's' }
const ofOidc = { issuer: 'https://login.example', client, callback: '/callback' }
const plainProvider = {
  ...{
    name: 'plain',
    authorize: 'https://plain.example/a',
    token: 'https://plain.example/t',
    client,
    callback: '/callback',
  },
  subject: () => 1,
}
const ofExchange = { tokenEndpoint: 'https://login.example/token', client, audience: 'billing' }
const ofReset = { path: '/reset', accountOf: () => undefined, send: () => {} }
const mail = emailSignIn({ path: '/link', send: () => {} })

const demands: ReadonlyArray<readonly [string, ReadonlyArray<string>, (options: never) => unknown, Options]> = [
  ['oidc', ['maxAge', 'acrValues', 'idTokenAlgorithm'], oidc, ofOidc],
  ['oauth2', ['issuer'], oauth2, plainProvider],
  ['exchange', ['scope'], exchange, ofExchange],
  ['passwordSignIn', ['factors'], passwordSignIn, { accountOf: () => undefined }],
  ['passwordReset', ['isGood'], passwordReset, ofReset],
  ['begin', ['ask'], (options: never) => begin(mail, options), {}],
]

it.each(demands)('%s: an undefined option that would drop a check is a TypeError: %s', (_caller, names, make, base) => {
  expect(make(base as never)).toBeDefined()
  for (const name of names) {
    const call = () => make({ ...base, [name]: undefined } as never)
    expect(call).toThrow(new RegExp(`${name}.* is undefined; is a variable not set`))
    expect(call).toThrow(TypeError)
  }
})

it.each<[string, (of: never) => unknown]>([
  ['oidc', (of) => oidc({ ...ofOidc, client: of })],
  ['oauth2', (of) => oauth2({ ...plainProvider, client: of })],
  ['exchange', (of) => exchange({ ...ofExchange, client: of })],
])('%s: a client whose secret or key is undefined is a TypeError, never public', (caller, make) => {
  for (const name of ['secret', 'key']) {
    const call = () => make({ id: 'shop', [name]: undefined } as never)
    expect(call).toThrow(TypeError)
    expect(call).toThrow(`${caller}({ client }): ${name} is undefined, so any program could be this client`)
    expect(make({ id: 'shop', secret: 's', key: undefined } as never)).toBeDefined()
    expect(make({ id: 'shop', [name]: undefined, authentication: 'none' } as never)).toBeDefined()
  }
  expect(make({ id: 'shop' } as never)).toBeDefined()
})
