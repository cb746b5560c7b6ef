/** Files whose functions belong to one type, each as a value with the name of the type. The root exports them. */
import * as AuthErrors from './AuthError.js'
import * as Challenges from './Challenge.js'

/** The failures: their constructors, order and semigroup. */
export const AuthError = AuthErrors
/** Why a request was not authenticated. */
export type AuthError = AuthErrors.AuthError

/** What a 401 offers: constructor and rendering. */
export const Challenge = Challenges
/** A scheme and its parameters. */
export type Challenge = Challenges.Challenge
