/** Errors that a program may want to tell apart have a code that stays (examples/guides/failures.md). */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import Router from '@koa/router'
import Koa from 'koa'
import { describe, expect, it } from 'vitest'
import { httpBearer, UnavailableError, withAuth } from '../../../src/index.js'
import { seal } from '../../../src/audit/index.js'
import { NoLiveKey } from '../../../src/keys/index.js'
import { UpstreamGone } from 'koa-with-auth/sign-in/oidc'
import { SignInRefused } from '../../../src/sessions/index.js'
import { absent } from '../../../src/core/AuthError.js'
import { LawViolations } from '../../../src/testing/index.js'

const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })

const thrownBy = (f: () => unknown): unknown => {
  try {
    f()
  } catch (error) {
    return error
  }
  return undefined
}

const open = () => seal(new Router().get('/x', () => {}))

// A guard that is called as if it were a part of another function
const misplaced = async (): Promise<unknown> => {
  const app = new Koa()
  const seen = new Promise((resolve) => app.on('error', resolve))
  const guard = withAuth(bearer)
  app.use((ctx, next) => guard(ctx as never, next))
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { readonly port: number }
  const response = await fetch(`http://127.0.0.1:${port}/`)
  expect(response.status).toBe(500)
  server.close()
  return seen
}

describe('the code of an error', () => {
  it.each([
    ['ERR_AUTH_UNAVAILABLE', () => new UnavailableError('down')],
    ['ERR_SIGN_IN_REFUSED', () => new SignInRefused(absent)],
    ['ERR_NO_LIVE_KEY', () => new NoLiveKey()],
    ['ERR_UPSTREAM_GONE', () => new UpstreamGone('no grant')],
    ['ERR_LAW_VIOLATIONS', () => new LawViolations('a', [])],
    ['ERR_NOT_SEALED', () => thrownBy(open)],
    ['ERR_GUARD_MISPLACED', misplaced],
  ])('%s is the same for ever, and the guide lists it', async (code, make) => {
    expect(await make()).toMatchObject({ code })
    expect(readFileSync('examples/guides/failures.md', 'utf8')).toContain(`\`${code}\``)
  })
})
