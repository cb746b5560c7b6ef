/**
 * Explains to developers what was tried, and why each branch failed: only if `explain` is set.
 */
import { branchesOf, type AuthError } from '../core/AuthError.js'
import { render } from '../core/Challenge.js'
import type { AuthResponse } from '../core/ErrorMapper.js'

const reasons: Readonly<Record<AuthError['_tag'], string>> = {
  absent: 'no credential of this kind was sent',
  malformed: 'the credential breaks the syntax of its kind, is too long, or was sent twice',
  invalid: 'the credential was refused',
  expired: 'the credential is no longer good',
  forged: 'the credential is good, but another site made the browser send it (Sec-Fetch-Site, Origin)',
  insufficient: 'authenticated, but not allowed',
  throttled: 'too many guesses were made, so the credential was not looked at',
  unavailable: 'it cannot be decided now, or was not in time',
  raised: 'the hook threw',
}

/** Adds every branch to a problem. Nothing in it comes from a credential. */
export const tried = (response: AuthResponse, error: AuthError, realm: string): AuthResponse => {
  const account = branchesOf(error).map(({ _tag, challenge, skipped }) => ({
    ...(challenge !== undefined && { challenge: render(realm)(challenge) }),
    failure: skipped === true ? 'not asked' : _tag,
    reason: skipped === true ? 'another one had decided' : reasons[_tag],
  }))
  return { ...response, body: Object.assign({}, response.body, { tried: account }) }
}
