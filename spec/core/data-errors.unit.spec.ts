/** The classes of errors that a program compares: the errors of two copies of the package, such as of `import` and `require`, are alike. */
import { AuthEndedError, UnavailableError } from 'koa-with-auth'
import { SignInRefused } from 'koa-with-auth/sessions'
import { describe, expect, it } from 'vitest'

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
