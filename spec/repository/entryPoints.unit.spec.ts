/** Every entry point loads. Imported in the test, because a file that does not load is no failed test to some runners. */
import { describe, expect, it } from 'vitest'

const entryPoints: Readonly<Record<string, () => Promise<object>>> = {
  'koa-with-auth': () => import('koa-with-auth'),
  'koa-with-auth/audit': () => import('koa-with-auth/audit'),
  'koa-with-auth/keys': () => import('koa-with-auth/keys'),
  'koa-with-auth/keys/redis': () => import('koa-with-auth/keys/redis'),
  'koa-with-auth/keys/sqlite': () => import('koa-with-auth/keys/sqlite'),
  'koa-with-auth/passwords': () => import('koa-with-auth/passwords'),
  'koa-with-auth/events': () => import('koa-with-auth/events'),
  'koa-with-auth/jwt': () => import('koa-with-auth/jwt'),
  'koa-with-auth/sessions': () => import('koa-with-auth/sessions'),
  'koa-with-auth/sessions/redis': () => import('koa-with-auth/sessions/redis'),
  'koa-with-auth/sessions/sqlite': () => import('koa-with-auth/sessions/sqlite'),
  'koa-with-auth/testing': () => import('koa-with-auth/testing'),
  'koa-with-auth/testing/laws': () => import('koa-with-auth/testing/laws'),
}

describe('entry points', () => {
  it.each(Object.entries(entryPoints))('%s loads, and says what it has', async (_name, load) => {
    expect(Object.keys(await load())).not.toEqual([])
  })
})
