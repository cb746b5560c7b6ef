/**
 * What becomes of the result of a hook, before anyone else sees it.
 */
import * as E from 'fp-ts/lib/Either.js'
import type { Request } from 'koa'
import { forged as forgedError, invalid as invalidError } from './AuthError.js'
import { isForged } from './CrossOrigin.js'
import { constantFailure, explained, isAmbient, type Description } from './Description.js'
import { isAnonymous, type Result } from './Evaluation.js'
import { refused } from './fromAnswer.js'
import { settingsOf } from './Settings.js'

/**
 * Completes the result of a hook. A failure gets its challenges. A success becomes `forged` if another site made the
 * browser send the credential. `invalid` and `forged` are made once, so that the responder can reuse their responses.
 */
export const concluding = (description: Description, ambient = isAmbient(description)) => {
  const invalid = constantFailure(description, invalidError)
  const forged = constantFailure(description, forgedError)
  return (result: Result<unknown>, request: Request): Result<unknown> => {
    if (E.isLeft(result)) return result === refused ? invalid : E.left(explained(description, result.left))
    return ambient && !isAnonymous(result) && isForged(request, settingsOf(request)) ? forged : result
  }
}
