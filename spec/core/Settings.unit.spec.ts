/** Settings belong to the context of one request. Without them, the defaults apply. */
import { afterEach, describe, expect, it, vi } from 'vitest'
import { defaults } from '../../src/core/Settings.js'
import { carry, settingsOf } from '../../src/core/Exchange.js'
import { mockRequest } from 'koa-with-auth/testing'

afterEach(() => {
  vi.unstubAllEnvs()
})

describe('Settings', () => {
  it.each([
    ['development', true],
    ['production', false],
    ['test', false],
    [undefined, false],
  ])('failures are explained only if NODE_ENV is development: %s', async (env, explain) => {
    vi.stubEnv('NODE_ENV', env)
    // The module reads NODE_ENV when it is loaded
    vi.resetModules()
    const module = await import('../../src/core/Settings.js')
    expect(module.defaults).toMatchObject({ explain })
  })

  it('decision "csrf", and the time limit: the defaults apply if nothing was set', () => {
    expect(settingsOf(mockRequest())).toBe(defaults)
    expect(defaults).toMatchObject({ csrf: true, timeout: 10_000, realm: 'api', trustedOrigins: new Set() })
  })

  it('A-38 belong to the request that has them, not to the next one', () => {
    const request = mockRequest()
    const settings = { ...defaults, csrf: false }
    carry(request, settings)
    expect(settingsOf(request)).toBe(settings)
    expect(settingsOf(mockRequest())).toBe(defaults)
  })

  it('A-01 cannot be set by a header', () => {
    const fields = [['koa-with-auth/exchange', '{"settings":{"csrf":false}}']] as const
    expect(settingsOf(mockRequest({ fields }))).toBe(defaults)
  })
})
