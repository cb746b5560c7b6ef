/**
 * A handler that writes its own head, with everything that Node's `writeHead` takes: what it says is kept, Vary is merged,
 * and what Node refuses is refused as Node does.
 */
import Router from '@koa/router'
import type { Context, Middleware } from 'koa'
import { httpBearer, withAuth } from 'koa-with-auth'
import { describe, expect, test } from 'vitest'
import { bearer, running } from '../support/behavior.js'

const guard = withAuth(httpBearer({ authenticate: () => ({ user: 'anna' }) }))
const passThrough: Middleware = (_ctx, next) => next()

type Write = (res: Context['res']) => unknown

/** An operation that answers by itself; what its `write` threw, if it did. */
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

describe('Vary is merged, Cache-Control kept unless it is given', () => {
  test.each<[string, Write]>([
    ['an object', head(200, { Vary: 'Origin' })],
    ['an object in other letters', head(200, { VARY: 'Origin' })],
    ['a list', head(200, ['Vary', 'Origin'])],
    ['a message and an object', head(200, 'OK', { Vary: 'Origin' })],
    ['a message and a list', head(200, 'OK', ['vary', 'Origin'])],
    ['no message and an object', head(200, undefined, { Vary: 'Origin' })],
    ['an object and a trailing nothing', head(200, { Vary: 'Origin' }, undefined)],
    ['an object and a trailing null', head(200, { Vary: 'Origin' }, null)],
    ['an object with a name that is empty', head(200, { Vary: 'Origin', '': 'x' })],
    ['a list with a number in it', head(200, ['Vary', 'Origin', 'Content-Length', 2])],
    ['a list with a list of cookies in it', head(200, ['Vary', 'Origin', 'Set-Cookie', ['a=1', 'b=2']])],
    ['a list of values', head(200, { Vary: ['Origin'] })],
    ['a status as text', head('200', { Vary: 'Origin' })],
    ['before it', (res) => res.setHeader('Vary', 'Origin').writeHead(200)],
    ['by flushHeaders', (res) => res.setHeader('Vary', 'Origin').flushHeaders()],
    ['by the first write', (res) => res.setHeader('Vary', 'Origin').write('')],
  ])('%s', async (_what, write) => {
    const { status, vary, caching, thrown } = await writing(write)
    expect({ status, vary, caching, thrown }).toEqual({
      status: 200,
      vary: 'Origin, Authorization',
      caching: 'private, no-store',
      thrown: undefined,
    })
  })

  test.each<[string, Write, string]>([
    [
      'what was removed is put back',
      (res) => (res.removeHeader('Vary'), res.removeHeader('Cache-Control')),
      'Authorization',
    ],
    ['what is there is not doubled', head(200, { Vary: 'authorization' }), 'authorization'],
    ['`*` stands for everything', head(200, ['Vary', '*']), '*'],
    ['members that are empty', (res) => res.setHeader('Vary', ' ,A,, B,'), 'A, B, Authorization'],
    ['a list that names it twice', head(200, ['Vary', 'A', 'Vary', 'B']), 'A, B, Authorization'],
    ['a message alone', head(200, 'OK'), 'Authorization'],
    ['no headers', head(200, null), 'Authorization'],
  ])('%s', async (_what, write, vary) => {
    expect(await writing(write)).toMatchObject({ status: 200, vary, caching: 'private, no-store', thrown: undefined })
  })

  test.each<[string, unknown[]]>([
    ['an object', [200, { 'Cache-Control': 'public' }]],
    ['a list', [200, ['cache-control', 'public']]],
    ['a message and an object', [200, 'OK', { 'Cache-Control': 'public' }]],
  ])('Cache-Control that is given by %s', async (_what, args) => {
    expect(await writing(head(...args))).toMatchObject({ caching: 'public', vary: 'Authorization' })
  })

  test.each<[string, unknown[]]>([
    ['an object', [200, { 'Set-Cookie': ['a=1', 'b=2'] }]],
    ['a list', [200, ['Set-Cookie', 'a=1', 'Set-Cookie', 'b=2']]],
    ['a list with a list', [200, ['Set-Cookie', ['a=1', 'b=2']]]],
  ])('cookies in %s survive, and replace those before', async (_what, args) => {
    const { headers } = await writing((res) => head(...args)(res.setHeader('Set-Cookie', 'old=1')))
    expect(headers['set-cookie']).toEqual(['a=1', 'b=2'])
  })
})

describe('what Node refuses is Node’s own error', () => {
  test.each<[string, unknown[]]>([
    ['an odd list', [200, ['Vary']]],
    ['a name that is none', [200, { 'b c': '1' }]],
    ['a line break', [200, { A: 'b\r\nSet-Cookie: c=1' }]],
    ['a line break in a list', [200, ['A', 'b\r\nSet-Cookie: c=1']]],
    ['a value that is undefined', [200, { A: undefined }]],
    ['a value in a list that is undefined', [200, ['A', undefined]]],
    ['a status out of range', [99]],
    ['no status', ['x', { Vary: 'Origin' }]],
  ])('%s', async (_what, args) => {
    const guarded = await writing(head(...args))
    // with a field before it, as behind a guard
    const plain = await writing((res) => head(...args)(res.setHeader('Vary', 'Origin')), passThrough, true)
    const codeOf = ({ thrown }: typeof plain): unknown => Reflect.get(Object(thrown) as object, 'code')
    expect(codeOf(plain)).toMatch(/^ERR_/)
    expect(codeOf(guarded)).toBe(codeOf(plain))
    expect(guarded).toMatchObject({ status: 200, caching: 'private, no-store' })
    expect(guarded.vary).toContain('Authorization')
  })

  test('a second head', async () => {
    const { thrown, vary } = await writing((res) => res.writeHead(200).writeHead(200, { Vary: 'Origin' }))
    expect(thrown).toMatchObject({ code: 'ERR_HTTP_HEADERS_SENT' })
    expect(vary).toBe('Authorization')
  })
})

describe('upstream middleware that wraps `writeHead`', () => {
  const wrapping =
    (
      wrap: (ctx: Context, writeHead: Context['res']['writeHead']) => Context['res']['writeHead'],
      restore: boolean,
    ): Middleware =>
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

  test('and restores it behind the operation: Vary and Cache-Control are there already', async () => {
    for (const write of [() => undefined, (res: Context['res']) => res.setHeader('X-Own', '1')]) {
      // the head is written by Koa, after all middleware
      const { ask } = await running((app) => {
        app.use(wrapping((_ctx, before) => before, true))
        const handle = (ctx: Context) => {
          write(ctx.res)
          ctx.body = 'ok'
        }
        // Safe: the router asks for its own context type
        app.use(new Router().get('/x', guard as never, handle as never).routes())
      })
      const { status, headers } = await ask('/x', bearer('t'))
      expect([status, headers.vary, headers['cache-control']]).toEqual([200, 'Authorization', 'private, no-store'])
      const denied = await ask('/x')
      expect([denied.status, denied.headers.vary, denied.headers['cache-control']]).toEqual([
        401,
        'Authorization',
        'no-store',
      ])
    }
  })
})
