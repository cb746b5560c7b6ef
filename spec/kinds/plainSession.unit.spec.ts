/** Sessions of plain koa-session: what is weak in its options. */
import Koa from 'koa'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { weaknessesOf, warnOfShortKey } from '../../src/kinds/plainSession.js'

// Each weakness of a plain koa-session is reported, and nothing else.

const strong = { store: {}, sameSite: 'lax', secure: true }

describe('weaknessesOf', () => {
  it.each<[object]>([
    [{}],
    [{ store: undefined, ContextStore: class {} }],
    [{ sameSite: true }],
    [{ sameSite: 'Strict' }],
    [{ signed: true, httpOnly: true, maxAge: 1000, valid: () => true }],
    [{ maxAge: undefined, valid: 'async' }],
  ])('finds nothing in %o', (options) => {
    expect(weaknessesOf({ ...strong, ...options }, true)).toStrictEqual([])
  })

  const storing = 'without a store the session is in the cookie, readable, and signing out cannot end it; set `store`'
  const site = "browsers send the cookie along from other sites; set `sameSite: 'lax'`"
  const bare = 'the cookie can travel unencrypted; set `secure: true`'

  it.each<[object, string]>([
    [{ store: undefined }, storing],
    [{ signed: false }, 'unsigned cookies can be written by anybody; remove `signed: false`'],
    [{ httpOnly: false }, 'scripts can read the cookie; remove `httpOnly: false`'],
    [{ sameSite: undefined }, site],
    [{ sameSite: 'none' }, site],
    [{ sameSite: 'laxer' }, site],
    [{ sameSite: 'relax' }, site],
    [{ sameSite: false }, site],
    [{ secure: undefined }, bare],
    [{ secure: false }, bare],
    [{ maxAge: 'session' }, 'a stolen cookie works for ever; set `maxAge` to milliseconds'],
    [
      { valid: async () => false },
      '`valid` is async, so every session counts as valid; make it sync, or use `loadUser`',
    ],
  ])('finds one in %o', (options, warning) => {
    expect(weaknessesOf({ ...strong, ...options }, true)).toStrictEqual([warning])
  })

  it('finds a cookie that can be sent unencrypted only in production', () => {
    expect(weaknessesOf({ ...strong, secure: false }, false)).toStrictEqual([])
  })

  it('finds several together', () => {
    const weak = { signed: false, httpOnly: false, maxAge: 'session', valid: async () => true }
    expect(weaknessesOf(weak, true)).toHaveLength(7)
  })
})

describe('warnOfShortKey', () => {
  it('warns once for an application, and says what to do', () => {
    const warn = vi.spyOn(process, 'emitWarning').mockReturnValue()
    onTestFinished(() => warn.mockRestore())
    const app = new Koa()
    warnOfShortKey(app)
    warnOfShortKey(app)
    const warning = /^app\.keys: an older key has fewer than 32 characters\. .* take it out/
    expect(warn.mock.calls).toStrictEqual([[expect.stringMatching(warning), 'SessionWarning']])
  })
})
