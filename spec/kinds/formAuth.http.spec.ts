/** `formAuth`: the fields of a parsed body are the credentials, and nothing else of the request is. */
import { bodyParser } from '@koa/bodyparser'
import Router from '@koa/router'
import { either as E } from 'fp-ts'
import Koa, { type Request } from 'koa'
import {
  anyOf,
  apiKeyHeader,
  authSettings,
  constantTimeEqual,
  formAuth,
  httpBasicAuth,
  optional,
  throttled,
  withAuth,
  type ErrorMapper,
} from 'koa-with-auth'
import { Authenticator, isAuthenticator } from 'koa-with-auth/fp'
import { audit } from 'koa-with-auth/audit'
import { openApi } from 'koa-with-auth/openapi'
import { mockRequest } from 'koa-with-auth/testing'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { describe, expect, it } from 'vitest'
import { untyped } from '../support/projects/mistakes.js'
import { ask, listen } from '../support/servers/server.js'

type SignIn = Readonly<Record<'email' | 'password', string>>

/** A form whose hook notes what it was called with. */
const noted = () => {
  const calls: SignIn[] = []
  const form = formAuth({
    fields: ['email', 'password'],
    authenticate: (_request, sent) => {
      calls.push(sent)
      return constantTimeEqual(sent.password, 'good') && { email: sent.email }
    },
  })
  return { calls, form }
}

interface SiteOptions {
  readonly parse?: Koa.Middleware | null
  readonly errorMapper?: ErrorMapper
}

/** One operation, at any method, behind an authenticator. */
const site = async <P>(
  a: Authenticator<P>,
  { parse = bodyParser({ parsedMethods: ['POST', 'PUT', 'PATCH', 'GET'] }), errorMapper }: SiteOptions = {},
) => {
  const ran = { handler: 0 }
  const app = new Koa()
  app.use(authSettings({ ...(errorMapper !== undefined && { errorMapper }) }))
  const router = new Router()
  if (parse !== null) app.use(parse)
  router.all('/x', withAuth(a), (ctx) => {
    ran.handler++
    ctx.body = { auth: ctx.request.auth ?? null }
  })
  const served = await listen(app.use(router.routes()))
  const send = (body: string | undefined, headers: Record<string, string> = {}, path = '/x', method = 'POST') =>
    ask(served.url + path, { method, headers, ...(body !== undefined && { body }) })
  return {
    ran,
    errors: served.errors,
    send,
    form: (body: string, headers: Record<string, string> = {}, path?: string) =>
      send(body, { 'Content-Type': 'application/x-www-form-urlencoded', ...headers }, path),
    json: (body: unknown, headers: Record<string, string> = {}) =>
      send(JSON.stringify(body), { 'Content-Type': 'application/json', ...headers }),
  }
}

const good = 'email=anna%40example.com&password=good'

describe('formAuth', () => {
  it('passes the fields of a form and of a JSON object, and only those, to the hook', async () => {
    const { calls, form } = noted()
    const { ran, form: post, json } = await site(form)
    for (const answer of [await post(`${good}&more=1`), await json({ email: 'anna@example.com', password: 'good' })]) {
      expect(answer.status).toBe(200)
      expect(JSON.parse(answer.text)).toStrictEqual({ auth: { email: 'anna@example.com' } })
    }
    const fields = { email: 'anna@example.com', password: 'good' }
    expect(calls).toStrictEqual([fields, fields])
    expect(ran.handler).toBe(2)
  })

  it('answers 401 with a challenge and problem details if the hook refuses', async () => {
    const { form: post, ran } = await site(noted().form)
    const { status, challenge, text, headers } = await post('email=anna%40example.com&password=bad')
    expect(status).toBe(401)
    expect(challenge).toBe('Form realm="api", fields="email password"')
    expect(JSON.parse(text)).toMatchObject({ status: 401, detail: 'Unauthorized' })
    expect(headers.get('cache-control')).toBe('no-store')
    expect(ran.handler).toBe(0)
  })

  it('offers its realm', async () => {
    const { send } = await site(formAuth({ fields: ['pin'], realm: 'door', authenticate: () => false }))
    expect((await send(undefined)).challenge).toBe('Form realm="door", fields="pin"')
  })

  it('in a list, each gets its own fields of one body', async () => {
    const seen: unknown[] = []
    const noting = (...fields: readonly [string, ...string[]]) =>
      formAuth({ fields, authenticate: (_request, sent) => seen.push(sent) === 0 })
    const [whole, other, part] = [noting('email', 'password'), noting('email', 'pin'), noting('email')]
    const { form: post } = await site(anyOf([whole, other, part]))
    await post(`${good}&pin=1`)
    const email = 'anna@example.com'
    expect(seen).toStrictEqual([{ email, password: 'good' }, { email, pin: '1' }, { email }])
  })

  it('is absent from a body that a parser left as null', async () => {
    const parse: Koa.Middleware = (ctx, next) => {
      ctx.request.body = null
      return next()
    }
    const { calls, form } = noted()
    expect((await (await site(form, { parse })).send(good)).status).toBe(401)
    expect(calls).toStrictEqual([])
  })

  it('never reads the URL, a header or a cookie', async () => {
    const { calls, form } = noted()
    const { send } = await site(form)
    const fields = { email: 'anna@example.com', password: 'good', Cookie: 'email=a; password=good' }
    expect((await send(undefined, fields, `/x?${good}`)).status).toBe(401)
    expect((await send(undefined, fields, `/x?${good}`, 'GET')).status).toBe(401)
    expect(calls).toStrictEqual([])
  })

  it.each<[string, unknown]>([
    ['no password', { email: 'anna' }],
    ['no email', { password: 'good' }],
    ['an empty field', { email: '', password: 'good' }],
    ['a number', { email: 1, password: 'good' }],
    ['null', { email: null, password: 'good' }],
    ['an array of one string', { email: ['anna'], password: 'good' }],
    ['an object', { email: { $ne: '' }, password: { $ne: '' } }],
    ['a string that is too long', { email: 'a'.repeat(8193), password: 'good' }],
    ['another letter case', { Email: 'anna', Password: 'good' }],
    ['a lone surrogate', { email: 'anna', password: '\ud800good' }],
    ['an array of the fields', ['anna', 'good']],
    ['fields one level down', { user: { email: 'anna', password: 'good' } }],
    ['no fields', {}],
  ])('answers 4xx without a call of the hook: %s', async (_what, body) => {
    const { calls, form } = noted()
    const { json, ran } = await site(form)
    expect((await json(body)).status).toBe(401)
    expect(calls).toStrictEqual([])
    expect(ran.handler).toBe(0)
  })

  it.each([
    ['a field twice', 'email=anna&email=ben&password=good'],
    ['a field as an array', 'email[]=anna&password=good'],
    ['a field as an object', 'email[a]=anna&password=good'],
  ])('answers 4xx to a form with %s', async (_what, body) => {
    const { calls, form } = noted()
    const { form: post } = await site(form)
    expect((await post(body)).status).toBe(401)
    expect(calls).toStrictEqual([])
  })

  it('takes a field of 8192 characters', async () => {
    const { calls, form } = noted()
    const { json } = await site(form)
    expect((await json({ email: 'a'.repeat(8192), password: 'good' })).status).toBe(200)
    expect(calls).toHaveLength(1)
  })

  it.each([
    ['email', 'anna'],
    ['body', { email: 'anna', password: 'good' }],
  ])('ignores a polluted prototype: %s', async (name, value) => {
    const { calls, form } = noted()
    const request = mockRequest()
    if (name === 'email') Object.assign(request, { body: { password: 'good' } })
    Object.defineProperty(Object.prototype, name, { value, configurable: true, enumerable: false, writable: true })
    const result = await form.evaluate(request)
    Reflect.deleteProperty(Object.prototype, name)
    expect(result).toMatchObject({ _tag: 'Left', left: { _tag: name === 'email' ? 'malformed' : 'absent' } })
    expect(calls).toStrictEqual([])
  })

  it.each([
    ['Sec-Fetch-Site', { 'Sec-Fetch-Site': 'cross-site' }],
    ['Sec-Fetch-Site of a sister site', { 'Sec-Fetch-Site': 'same-site' }],
    ['Origin', { Origin: 'https://evil.example' }],
  ])('refuses a form of another site before the hook runs, with 403: %s', async (_what, headers) => {
    for (const wrap of [(a: Authenticator<unknown>) => a, throttled({ limiter: limiter() })]) {
      const { calls, form } = noted()
      const { form: post, ran } = await site(wrap(form))
      const { status, text } = await post(good, headers)
      expect(status).toBe(403)
      expect(text).toContain('CSRF')
      expect(calls).toStrictEqual([])
      expect(ran.handler).toBe(0)
    }
  })

  it('is a 5xx that names bodyParser if nothing parsed the body', async () => {
    const { calls, form } = noted()
    const { send, errors } = await site(form, { parse: null })
    for (const method of ['POST', 'PUT', 'PATCH']) {
      expect((await send(good, {}, '/x', method)).status).toBe(500)
      expect(String(errors.pop())).toContain('bodyParser')
    }
    expect(calls).toStrictEqual([])
    // nothing was sent, so nothing had to be parsed
    expect((await send(undefined)).status).toBe(401)
    expect((await send('')).status).toBe(401)
    expect((await send(undefined, {}, '/x', 'GET')).status).toBe(401)
    expect(errors).toEqual([])
  })

  it('works if another parser has read the body into an object without a prototype', async () => {
    const parse: Koa.Middleware = async (ctx, next) => {
      const request: Request & { body?: unknown } = ctx.request
      request.body = Object.assign(Object.create(null) as object, { email: 'anna', password: 'good' })
      await next()
    }
    const { form: post } = await site(noted().form, { parse })
    expect((await post(good)).status).toBe(200)
  })
})

const limiter = () => new RateLimiterMemory({ points: 3, duration: 60, keyPrefix: String(Math.random()) })

describe('formAuth with combinators', () => {
  it('throttled counts no request that carries none of the fields', async () => {
    const { form } = noted()
    const { json } = await site(throttled({ limiter: limiter() })(form))
    for (let at = 0; at < 6; at++) expect((await json({ pet: 'rex' })).status).toBe(401)
    expect((await json({ email: 'anna', password: 'good' })).status).toBe(200)
  })

  it('throttled counts one guess where two forms of a list read the same fields', async () => {
    const limits = limiter()
    const a = noted()
    const b = noted()
    const list = Authenticator.Alt.alt(throttled({ limiter: limits })(a.form), () =>
      throttled({ limiter: limits })(b.form),
    )
    const { form: post } = await site(list)
    const statuses: number[] = []
    for (let at = 0; at < 4; at++) statuses.push((await post('email=anna&password=bad')).status)
    expect(statuses).toStrictEqual([401, 401, 401, 429])
    expect([a.calls.length, b.calls.length]).toStrictEqual([3, 3])
  })

  it('throttled takes the guess back where another form of the list, with a field more, is between two that read the same', async () => {
    const limits = limiter()
    const stranger = formAuth({ fields: ['email', 'password'], authenticate: () => false as const })
    const longer = formAuth({ fields: ['email', 'password', 'code'], authenticate: () => false as const })
    const { form: known, calls } = noted()
    const list = Authenticator.Alt.alt(
      Authenticator.Alt.alt(throttled({ limiter: limits })(stranger), () => longer),
      () => throttled({ limiter: limits })(known),
    )
    const { form: post } = await site(list)
    for (let at = 0; at < 8; at++) expect((await post(`${good}&code=1`)).status).toBe(200)
    expect(calls).toHaveLength(8)
  })

  it('lists go on if the body is not such a form, or if there is none', async () => {
    const key = apiKeyHeader({ authenticate: (_request, sent) => sent === 'k1' && { email: 'cron' } })
    const { json, send, form: post } = await site(Authenticator.Alt.alt(noted().form, () => key))
    expect((await send(undefined, { key: 'k1' })).status).toBe(200)
    expect((await json({ pet: 'rex' }, { key: 'k1' })).status).toBe(200)
    expect((await post(good)).status).toBe(200)
    const { status, challenge } = await json({ pet: 'rex' })
    expect(status).toBe(401)
    expect(challenge).toContain('Form')
    expect(challenge).toContain('ApiKey')
  })

  it('optional lets callers pass who sent no form', async () => {
    const { send, form: post } = await site(optional(noted().form))
    expect((await send(undefined)).text).toBe('{"auth":null}')
    expect((await post('email=anna&password=bad')).status).toBe(401)
  })
})

describe('formAuth in papers', () => {
  const { form } = noted()
  const described = (a: Authenticator<unknown>, method: 'post' | 'get' = 'post') => {
    const router = new Router()
    router[method]('/login', withAuth(a), () => {})
    return openApi(router, { title: 'Pets', version: '1' }).paths['/login']?.[method]
  }
  const schema = {
    type: 'object',
    required: ['email', 'password'],
    properties: {
      email: { type: 'string', minLength: 1, maxLength: 8192 },
      password: { type: 'string', minLength: 1, maxLength: 8192, format: 'password' },
    },
  }
  const content = { 'application/x-www-form-urlencoded': { schema }, 'application/json': { schema } }

  it('OpenAPI documents the request body, which requires every field', () => {
    const operation = described(throttled({ limiter: limiter() })(form))
    expect(operation?.requestBody).toStrictEqual({ required: true, content })
    expect(operation?.security).toBeUndefined()
    expect(operation?.description).toContain('`email` and `password`')
    expect(Object.keys(operation?.responses ?? {})).toStrictEqual(['200', '401', '403', '429', '503'])
    expect(described(form, 'get')?.requestBody).toBeUndefined()
  })

  it('OpenAPI does not require the body where another member of a list lets in', () => {
    const basic = httpBasicAuth({ authenticate: () => false })
    const operation = described(Authenticator.Alt.alt<unknown>(form, () => basic))
    expect(operation?.requestBody).toStrictEqual({ required: false, content })
    expect(operation?.security).toStrictEqual([{ basic: [] }])
    expect(described(optional(form))?.requestBody).toMatchObject({ required: false })
  })

  it('OpenAPI lists each of two forms', () => {
    const pin = formAuth({ fields: ['pin'], authenticate: () => false })
    const either = described(Authenticator.Alt.alt<unknown>(form, () => pin))
    expect(either?.requestBody).toMatchObject({
      required: true,
      content: { 'application/json': { schema: { anyOf: [schema, { required: ['pin'] }] } } },
    })
  })

  it("OpenAPI keeps the operation's own request body", async () => {
    const { operation } = await import('koa-with-auth')
    const router = new Router()
    const requestBody = { content: { 'application/json': {} } }
    router.post('/login', operation({ requestBody }), withAuth(form), () => {})
    const { paths } = openApi(router, { title: 'Pets', version: '1' })
    expect(paths['/login']?.post?.requestBody).toStrictEqual(requestBody)
  })

  it('the audit names the fields', () => {
    const router = new Router()
    router.post('/login', withAuth(throttled({ limiter: limiter() })(form)), () => {})
    const [operation] = audit(router).operations
    expect(operation?.protection).toBe('form (email, password)')
    expect(operation?.ways).toMatchObject([{ demands: [{ credential: 'form (email, password) throttled 3/60 s' }] }])
    expect(operation?.csrf).toBe('checked')
    expect(operation?.undescribed).toStrictEqual([])
  })
})

describe('formAuth: mistakes', () => {
  const authenticate = () => false
  it.each([
    ['no options', undefined, 'formAuth takes an object of options'],
    ['no fields', { authenticate }, 'formAuth({ fields })'],
    ['an empty array', { fields: [], authenticate }, 'formAuth({ fields })'],
    ['a string', { fields: 'email', authenticate }, 'formAuth({ fields })'],
    ['a field twice', { fields: ['email', 'email'], authenticate }, 'names "email" twice'],
    ['a field that is empty', { fields: [''], authenticate }, 'formAuth({ fields })'],
    ['a field that is no string', { fields: [1], authenticate }, 'formAuth({ fields })'],
    ['a field with a line break', { fields: ['a\nb'], authenticate }, 'formAuth({ fields })'],
    ['no hook', { fields: ['email'] }, 'formAuth({ authenticate }) must be a function'],
    ['a hook of three parameters', { fields: ['a', 'b'], authenticate: (_r: 1, _a: 2, _b: 3) => 1 }, 'takes 3'],
    ['an unknown option', { fields: ['email'], authenticate, field: 'x' }, 'no option "field"'],
  ])('%s is a TypeError', (_what, options, message) => {
    const make = () => formAuth(untyped(options))
    expect(make).toThrow(TypeError)
    expect(make).toThrow(message)
  })

  it('a later change of the array has no effect', async () => {
    const fields = ['email', 'password']
    const form = formAuth({ fields, authenticate: (_request, sent) => sent })
    fields.push('pin')
    expect(isAuthenticator(form)).toBe(true)
    const { form: post } = await site(form)
    expect((await post(good)).status).toBe(200)
  })
})

it.each([
  ['Content-Length', '5'],
  ['Transfer-Encoding', 'chunked'],
] as const)('a form that nothing has parsed is none, and the record says why: %s', (...field) => {
  const form = formAuth({ fields: ['email'], authenticate: () => 'anna' })
  const request = mockRequest({ method: 'POST', fields: [field] })
  expect(form.evaluate(request)).toMatchObject(E.left({ _tag: 'raised' }))
  Object.assign(request, { body: {} })
  expect(form.evaluate(request)).toMatchObject(E.left({ _tag: 'absent', why: 'body' }))
  // a parser has read this one
  Object.assign(request, { body: { other: 'x' } })
  expect(form.evaluate(request)).not.toHaveProperty('left.why')
})
