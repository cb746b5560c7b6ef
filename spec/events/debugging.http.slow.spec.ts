/** NODE_DEBUG=koa-with-auth prints the decisions about requests, and no credential. Without it, nothing is printed or published. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { repository } from '../support/projects/typecheck.js'

const SECRET = 's3cr3t-cr3d3nt1al'

const output = (NODE_DEBUG: string, program = 'spec/support/sites/debuggedSite.mjs') =>
  promisify(execFile)(process.execPath, [program, SECRET], {
    cwd: repository,
    env: { ...process.env, NODE_DEBUG, NODE_OPTIONS: '' },
    timeout: 30_000,
  })

describe('NODE_DEBUG', () => {
  it('koa-with-auth: prints each decision', async () => {
    const { stderr, stdout } = await output('koa-with-auth')
    const lines = stderr
      .replaceAll(/^KOA-WITH-AUTH \d+: /gm, '')
      .replaceAll(/\d+\.\d\d ms$/gm, '0 ms')
      .trim()
      .split('\n')
    expect(lines).toStrictEqual([
      'ASKED',
      'GET /reports/:id 200 accepted by user; router /reports, 0 ms',
      'GET /reports/:id 401 refused (invalid: hook) by user; router /reports, 0 ms',
      'GET /either 401 refused (invalid: hook): apiKeyHeader_X-Key invalid: hook, user absent; operation, 0 ms',
      'GET /open 200 public; operation, 0 ms',
      'GET /down 503 unavailable by user; operation, 0 ms',
    ])
    // No credential, no subject, no query and no path
    expect(stderr).not.toContain(SECRET)
    expect(stdout).toBe('true\n')
  })

  it('koa-with-auth: prints decisions about upgrades in a program that guards nothing else', async () => {
    const { stderr } = await output('koa-with-auth', 'spec/support/sites/debuggedUpgrade.mjs')
    expect(stderr.replace(/^KOA-WITH-AUTH \d+: /, '').replace(/\d+\.\d\d ms\n$/, '0 ms')).toBe(
      'GET /socket 401 refused (invalid: hook) by user; upgrade, 0 ms',
    )
  })

  it.each(['', 'http_only', 'koa'])('%j: prints nothing, and has no listener', async (debug) => {
    const { stderr, stdout } = await output(debug)
    expect([stderr, stdout]).toStrictEqual(['ASKED\n', 'false\n'])
  })
})
