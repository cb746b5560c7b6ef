/** The command that asks a protected MCP server what it must do. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import Koa from 'koa'
import { protectedResource } from 'koa-with-auth/jwt'
import { expect, it } from 'vitest'
import { application } from '../../examples/mcp/app.js'
import { repository } from '../support/projects/typecheck.js'
import { reserved } from '../support/servers/server.js'

const run = promisify(execFile)

const command = async (...args: string[]): Promise<{ code: unknown; out: string }> =>
  run('node', [`${repository}spec/data/mcp.mjs`, ...args]).then(
    ({ stdout }) => ({ code: 0, out: stdout }),
    (error: { code: unknown; stdout: string; stderr: string }) => ({
      code: error.code,
      out: error.stdout + error.stderr,
    }),
  )

const served = async (make: (url: string) => Koa) => {
  const { port, serve } = await reserved()
  const url = `http://127.0.0.1:${port}/mcp`
  serve(make(url).callback())
  return url
}

it('asks a server what needs no token, and fails where something does not hold', async () => {
  const good = await command(await served((resource) => application({ issuer: 'http://127.0.0.1:9', resource })))
  expect(good.out).toMatch(/ok {3}challenge: .*\n/)
  expect(good.out).toMatch(/- {4}audience: .* not asked: no issuer/)
  expect(good.code).toBe(0)
  const open = await served((resource) => {
    const { metadata } = protectedResource({ resource, authorizationServers: ['https://login.example'] })
    return new Koa().use(metadata).use((ctx) => void (ctx.body = {}))
  })
  const bad = await command(open)
  expect(bad.out).toContain('FAIL unauthenticated')
  expect(bad.code).toBe(1)
  expect(await command()).toMatchObject({ code: 2, out: expect.stringContaining('--issuer PORT') as string })
})
