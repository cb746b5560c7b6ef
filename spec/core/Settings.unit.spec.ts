/** Settings travel on the context of one request; without any the defaults hold. */
import { afterEach, describe, expect, it, vi } from 'vitest'
import { carry, defaults, settingsOf } from '../../src/core/Settings.js'
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
  ])('failures are explained where NODE_ENV is development, never by omission: %s', async (env, explain) => {
    vi.stubEnv('NODE_ENV', env)
    // looks at this environment
    vi.resetModules()
    const module = await import('../../src/core/Settings.js')
    expect(module.defaults).toMatchObject({ explain })
  })

  it('decision "csrf", and the time limit: what holds where nothing was set', () => {
    expect(settingsOf(mockRequest())).toBe(defaults)
    expect(defaults).toMatchObject({ csrf: true, timeout: 10_000, realm: 'api', trustedOrigins: new Set() })
  })

  it('A-38 belong to the request that carries them, not to the next', () => {
    const request = mockRequest()
    const settings = { ...defaults, csrf: false }
    carry(request, settings)
    expect(settingsOf(request)).toBe(settings)
    expect(settingsOf(mockRequest())).toBe(defaults)
  })

  it('A-01 no header makes settings', () => {
    const fields = [['koa-with-auth/settings', '{"csrf":false}']] as const
    expect(settingsOf(mockRequest({ fields }))).toBe(defaults)
  })
})
