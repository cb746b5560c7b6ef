/** Hooks that reveal the credential, in every way in which a hook can fail. */
import { either as E, option as O } from 'fp-ts'
import createError from 'http-errors'

/** By what they do with the credential. */
export const carelessHooks: Readonly<Record<string, (credential: string) => unknown>> = {
  refuses: () => false,
  none: () => O.none,
  left: (credential) => E.left(credential),
  leftError: (credential) => E.left(new Error(credential)),
  leftLater: async (credential) => E.left({ _tag: 'invalid token', credential }),
  throwsError: (credential) => {
    throw new Error(`bad credential ${credential}`)
  },
  throwsText: (credential) => {
    throw credential
  },
  rejects: (credential) => Promise.reject(new Error(credential)),
  throws401: (credential) => {
    throw createError(401, `bad credential ${credential}`, { headers: { 'X-Credential': credential } })
  },
  throws200: (credential) => {
    throw Object.assign(new Error(credential), { status: 200, expose: true, headers: { location: `/${credential}` } })
  },
  rejects503: (credential) => Promise.reject(createError(503, credential, { expose: true })),
  answersTask: (credential) => () => credential,
}
