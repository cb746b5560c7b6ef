/**
 * A handler that calls Node's `writeHead` itself, with everything that it accepts. What the handler writes is kept,
 * Vary is merged, and what Node refuses is refused with the same error.
 */
import Router from '@koa/router'
import type { Context, Middleware } from 'koa'
import { httpBearer, withAuth } from 'koa-with-auth'
import { describe, expect, test } from 'vitest'
import { bearer, running } from '../../support/models/behavior.js'

const guard = withAuth(httpBearer({ authenticate: () => ({ user: 'anna' }) }))
const passThrough: Middleware = (_ctx, next) => next()

type Write = (res: Context['res']) => unknown

/** An operation that writes its own response. It reports what `write` threw. */
const writing = async (write: Write, upstream: Middleware = passThrough, open = false) => {
  let thrown: unknown
  const { ask, errors } = await running((app) => {
    const handle = (ctx: Context) => {
      ctx.status = 200
      ctx.respond = false
      try {
        write(ctx.res)
      } catch (error) {
        thrown = error
      }
      if (!ctx.res.writableEnded) ctx.res.end('ok')
    }
    app.use(upstream)
    // Safe: the router asks for its own context type
    app.use(new Router().get('/x', (open ? withAuth(null) : guard) as never, handle as never).routes())
  })
  const { status, headers } = await ask('/x', bearer('t'))
  return { status, vary: headers.vary, caching: headers['cache-control'], headers, thrown, errors }
}

// Safe: some of what is tried here is not in Node's types
const head =
  (...args: unknown[]): Write =>
  (res) =>
    Reflect.apply(res.writeHead, res, args)

describe('writeHead merges Vary, and keeps Cache-Control if the handler gives it', () => {
  test.each<[string, Write]>([
    ['an object', head(200, { Vary: 'Origin' })],
    ['a list', head(200, ['Vary', 'Origin'])],
    ['a message and an object', head(200, 'OK', { Vary: 'Origin' })],
    ['no message and an object', head(200, undefined, { Vary: 'Origin' })],
    ['an object and a trailing undefined', head(200, { Vary: 'Origin' }, undefined)],
    ['an object with an empty name', head(200, { Vary: 'Origin', '': 'x' })],
    ['a list that has a number', head(200, ['Vary', 'Origin', 'Content-Length', 2])],
    ['a list that has a list of cookies', head(200, ['Vary', 'Origin', 'Set-Cookie', ['a=1', 'b=2']])],
    ['a status as a string', head('200', { Vary: 'Origin' })],
    ['a field that is set before', (res) => res.setHeader('Vary', 'Origin').writeHead(200)],
    ['by flushHeaders', (res) => res.setHeader('Vary', 'Origin').flushHeaders()],
    ['by the first write', (res) => res.setHeader('Vary', 'Origin').write('')],
  ])('%s', async (_what, write) => {
    const expected = { status: 200, vary: 'Origin, Authorization', caching: 'private, no-store', thrown: undefined }
    expect(await writing(write)).toMatchObject(expected)
  })

  const removing: Write = (res) => ['Vary', 'Cache-Control'].forEach((name) => res.removeHeader(name))
  test.each<[string, Write, string]>([
    ['a field that was removed is sent', removing, 'Authorization'],
    ['a member that is already there is not added again', head(200, { Vary: 'authorization' }), 'authorization'],
    ['`*` replaces everything', head(200, ['Vary', '*']), '*'],
    ['empty members are kept', (res) => res.setHeader('Vary', ' ,A,, B,'), 'A, B, Authorization'],
    ['a list may name the field twice', head(200, ['Vary', 'A', 'Vary', 'B']), 'A, B, Authorization'],
    ['a message without headers', head(200, 'OK'), 'Authorization'],
    ['no headers', head(200, null), 'Authorization'],
  ])('%s', async (_what, write, vary) => {
    expect(await writing(write)).toMatchObject({ status: 200, vary, caching: 'private, no-store', thrown: undefined })
  })

  test.each<[string, unknown[]]>([
    ['an object', [200, { 'Cache-Control': 'public' }]],
    ['a list', [200, ['cache-control', 'public']]],
    ['a message and an object', [200, 'OK', { 'Cache-Control': 'public' }]],
  ])('Cache-Control given by %s is kept', async (_what, args) => {
    expect(await writing(head(...args))).toMatchObject({ caching: 'public', vary: 'Authorization' })
  })

  test.each<[string, unknown[]]>([
    ['an object', [200, { 'Set-Cookie': ['a=1', 'b=2'] }]],
    ['a list', [200, ['Set-Cookie', 'a=1', 'Set-Cookie', 'b=2']]],
    ['a list that has a list', [200, ['Set-Cookie', ['a=1', 'b=2']]]],
  ])('cookies in %s are sent, and replace earlier ones', async (_what, args) => {
    const { headers } = await writing((res) => head(...args)(res.setHeader('Set-Cookie', 'old=1')))
    expect(headers['set-cookie']).toEqual(['a=1', 'b=2'])
  })
})

describe('what Node refuses throws Node’s own error', () => {
  test.each<[string, unknown[]]>([
    ['a list of odd length', [200, ['Vary']]],
    ['an invalid name', [200, { 'b c': '1' }]],
    ['a line break', [200, { A: 'b\r\nSet-Cookie: c=1' }]],
    ['a line break in a list', [200, ['A', 'b\r\nSet-Cookie: c=1']]],
    ['an undefined value', [200, { A: undefined }]],
    ['an undefined value in a list', [200, ['A', undefined]]],
    ['a status out of range', [99]],
    ['no status', ['x', { Vary: 'Origin' }]],
  ])('%s', async (_what, args) => {
    const guarded = await writing(head(...args))
    // A guard has set a field before
    const plain = await writing((res) => head(...args)(res.setHeader('Vary', 'Origin')), passThrough, true)
    const codeOf = ({ thrown }: typeof plain): unknown => Reflect.get(Object(thrown) as object, 'code')
    expect(codeOf(plain)).toMatch(/^ERR_/)
    expect(codeOf(guarded)).toBe(codeOf(plain))
    expect(guarded).toMatchObject({ status: 200, caching: 'private, no-store' })
    expect(guarded.vary).toContain('Authorization')
  })

  test('a second head throws ERR_HTTP_HEADERS_SENT', async () => {
    const { thrown, vary } = await writing((res) => res.writeHead(200).writeHead(200, { Vary: 'Origin' }))
    expect(thrown).toMatchObject({ code: 'ERR_HTTP_HEADERS_SENT' })
    expect(vary).toBe('Authorization')
  })
})

describe('upstream middleware that wraps `writeHead`', () => {
  type WriteHead = Context['res']['writeHead']
  const wrapping =
    (wrap: (ctx: Context, writeHead: WriteHead) => WriteHead, restore: boolean): Middleware =>
    async (ctx, next) => {
      const { res } = ctx
      const before = res.writeHead
      res.writeHead = wrap(ctx, before)
      await next()
      if (restore) res.writeHead = before
    }
  const adding = wrapping(
    ({ res }, before) =>
      ((...args: Parameters<typeof before>) => {
        res.setHeader('X-Late', '1')
        return before.apply(res, args)
      }) as typeof before,
    false,
  )

  test('is called, and Vary is merged', async () => {
    const { headers, vary } = await writing(head(200, { Vary: 'Origin' }), adding)
    expect([headers['x-late'], vary]).toEqual(['1', 'Origin, Authorization'])
  })

  test('may restore it after the operation: Vary and Cache-Control are already set', async () => {
    for (const write of [() => undefined, (res: Context['res']) => res.setHeader('X-Own', '1')]) {
      // Koa writes the head after all middleware
      const { ask } = await running((app) => {
        app.use(wrapping((_ctx, before) => before, true))
        const handle = (ctx: Context) => {
          write(ctx.res)
          ctx.body = 'ok'
        }
        // Safe: the router asks for its own context type
        app.use(new Router().get('/x', guard as never, handle as never).routes())
      })
      for (const [sent, status, caching] of [
        [bearer('t'), 200, 'private, no-store'],
        [{}, 401, 'no-store'],
      ] as const) {
        const headers = { vary: 'Authorization', 'cache-control': caching }
        expect(await ask('/x', sent)).toMatchObject({ status, headers })
      }
    }
  })
})
