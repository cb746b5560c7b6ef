/**
 * The result of calling an authenticator, also results that are forbidden.
 */
import { inspect } from 'node:util'
import { is as isAuthError, type AuthError } from '../../core/AuthError.js'

/** The result of a call. */
export type Verdict =
  | { readonly _tag: 'Passed'; readonly principal: unknown }
  | { readonly _tag: 'Failed'; readonly error: AuthError }
  | { readonly _tag: 'Threw'; readonly error: unknown }
  | { readonly _tag: 'NoEither'; readonly answer: unknown }
  | { readonly _tag: 'NeverSettled' }

/** Reads the result of an evaluation. */
export const verdictOf = (result: unknown): Verdict => {
  if (typeof result === 'object' && result !== null && '_tag' in result) {
    if (result._tag === 'Right' && 'right' in result) return { _tag: 'Passed', principal: result.right }
    if (result._tag === 'Left' && 'left' in result && isAuthError(result.left)) {
      return { _tag: 'Failed', error: result.left }
    }
  }
  return { _tag: 'NoEither', answer: result }
}

/** Whether a caller with credentials was let in; `optional` lets anonymous callers in, too. */
export const letSomebodyIn = (verdict: Verdict): boolean => verdict._tag === 'Passed' && verdict.principal !== undefined

/** A verdict in words. */
export const inWords = (verdict: Verdict): string => {
  switch (verdict._tag) {
    case 'Passed':
      return verdict.principal === undefined
        ? 'let an anonymous caller in, as undefined'
        : `let in ${shown(verdict.principal)}`
    case 'Failed':
      return verdict.error._tag === 'raised'
        ? `raised ${shown(verdict.error.error)}`
        : `refused as ${verdict.error._tag}`
    case 'Threw':
      return `threw ${shown(verdict.error)}`
    case 'NoEither':
      return `answered ${shown(verdict.answer)}, which is no Either of an AuthError`
    case 'NeverSettled':
      return 'never settled'
  }
}

/** A value in words, without the stack of an Error. */
export const shown = (u: unknown): string =>
  u instanceof Error ? `${u.name}: ${u.message}` : inspect(u, { depth: 3, breakLength: Infinity })
