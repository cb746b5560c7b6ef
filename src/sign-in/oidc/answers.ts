/**
 * The claims and tokens that came with a proof. The hook of `finish` can read them, and nothing keeps them: they are no
 * members of the proof, so neither a session nor a log gets them.
 */
import type { IDToken, TokenEndpointResponse, UserInfoResponse } from 'openid-client'

/** What a provider answered beside the proof. */
export interface ProviderAnswer {
  /** The claims of the ID token; `undefined` for plain OAuth 2.0. */
  readonly claims: IDToken | undefined
  /** The claims of userinfo, if `userinfo: true` asked for them. */
  readonly userinfo: UserInfoResponse | undefined
  /** The tokens, such as `access_token`. The library keeps none of them. */
  readonly tokens: TokenEndpointResponse
}

// The proof is copied before the hook gets it, and a symbol is copied with it
const carrier = Symbol('koa-with-auth/provider-answer')

const answers = new WeakMap<object, ProviderAnswer>()

/** A proof that carries an answer. */
export const carrying = <P extends object>(proof: P, answer: ProviderAnswer): P => {
  const key = Object.freeze({})
  answers.set(key, answer)
  return { ...proof, [carrier]: key }
}

/**
 * The claims and tokens that came with a proof, in the hook of `finish`: for the name of a new account, or to call the
 * provider's API. `undefined` for a proof that a session has kept, or that is no provider's.
 *
 * Never find a user by the e-mail address in the claims. Addresses change hands, and some providers let anybody write
 * any address into a profile. A user is found by `proof.issuer` and `proof.subject`.
 *
 * @example
 * import { providerAnswer } from 'koa-with-auth/sign-in/oidc'
 *
 * assert.strictEqual(providerAnswer({ method: 'password', at: 0 }), undefined)
 */
export const providerAnswer = (proof: object): ProviderAnswer | undefined => {
  const key: unknown = Object.hasOwn(proof, carrier) ? Reflect.get(proof, carrier) : undefined
  return typeof key === 'object' && key !== null ? answers.get(key) : undefined
}
