/**
 * The classes of errors that a program compares: the errors of two copies of the package, such as of `import` and `require`, are alike. And
 * what warnings say of an error.
 */
import { AuthEndedError, UnavailableError } from 'koa-with-auth'
import { SignInRefused } from 'koa-with-auth/sessions'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { errorInWords } from '../../src/core/data.js'

describe.each([
  [AuthEndedError, 'ERR_AUTH_ENDED'],
  [SignInRefused, 'ERR_SIGN_IN_REFUSED'],
  [UnavailableError, 'ERR_AUTH_UNAVAILABLE'],
])('%s', (type, code) => {
  it('has an error of another copy as its instance, and no other error', () => {
    const ofAnother = Object.assign(new Error('of another copy'), { code })
    expect([ofAnother instanceof type, new Error('own') instanceof type]).toEqual([true, false])
    for (const one of [undefined, null, code, 7]) expect((one as unknown) instanceof type).toBe(false)
  })
})

it('a class of the application is compared as usual', () => {
  class Down extends UnavailableError {}
  const [own, other] = [new Down('own'), new UnavailableError('other')]
  expect([own instanceof Down, own instanceof UnavailableError, other instanceof Down]).toEqual([true, true, false])
})

describe('an error in words', () => {
  const named = (name: string, message: string, code?: unknown) => Object.assign(new Error(message), { name, code })
  const secret = 'Top-Secret-Value'

  it.each<[what: string, error: unknown, words: string]>([
    ['a string', secret, 'not an Error'],
    ['a message', named('Error', 'down'), 'Error: down'],
    ['a code', named('Error', 'down', 'ECONNREFUSED'), 'Error ECONNREFUSED: down'],
    ['a code that is a number', named('Error', 'down', 5), 'Error: down'],
    ['a secret in the message', named('Error', `no ${secret}`, 'E1'), 'Error E1'],
    ['a secret in other letters, and encoded', named('Error', 'no topsecret%20value'), 'Error'],
    ['the beginning of a secret', named('Error', 'no topsecret'), 'Error: no topsecret'],
    ['16 letters of a long secret', named('Error', 'no another-secret of a'), 'Error'],
    ['a secret in the name', named(secret, 'down'), 'an Error'],
    [
      'getters that throw',
      new Proxy(new Error('down'), {
        get: () => {
          throw new Error('no')
        },
      }),
      'an Error',
    ],
    ['a line break', named('Error', 'a\nb\u2028c'), 'Error: a\\u{a}b\\u{2028}c'],
    ['a long message', named('Error', 'a'.repeat(2000)), `Error: ${'a'.repeat(1000 - 'Error: '.length)}`],
  ])('%s', (_what, error, words) => {
    expect(errorInWords(error, ['', secret, 'Another-Secret-of-a-Shop'])).toBe(words)
  })

  it('in production has no message', () => {
    vi.stubEnv('NODE_ENV', 'production')
    onTestFinished(() => void vi.unstubAllEnvs())
    expect(errorInWords(named('Error', 'down', 'E1'))).toBe('Error E1')
  })
})
