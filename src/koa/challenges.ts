/**
 * `WWW-Authenticate`: the challenges of an answer, each rendered once, in a way that opens no prompt where a script asked.
 */
import type { Context, Request } from 'koa'
import { render, type Challenge } from '../core/Challenge.js'

/** Sets the field, one line for each challenge; without any it is left alone. */
export const setChallenges = (ctx: Context, challenges: ReadonlyArray<Challenge>, realm: string): void => {
  const [first] = challenges
  if (first === undefined) return
  const line = (challenge: Challenge): string => {
    const { text, prompts } = rendered(challenge, realm)
    return prompts && isScript(ctx.request) ? `x${text}` : text
  }
  ctx.res.setHeader('WWW-Authenticate', challenges.length === 1 ? line(first) : [...new Set(challenges.map(line))])
}

// The schemes for which browsers open a prompt of their own
const prompting = /^(?:Basic|Digest|Negotiate|NTLM)$/i

/**
 * Whether a script in a browser's page asked, by `fetch` or XMLHttpRequest. Browsers send Sec-Fetch-Mode together with
 * Sec-Fetch-Site; who sends it alone (Node's own `fetch`) has no prompt that could open.
 */
const isScript = (request: Request): boolean => {
  const mode = request.get('Sec-Fetch-Mode')
  return mode === '' || request.get('Sec-Fetch-Site') === ''
    ? request.get('X-Requested-With').toLowerCase() === 'xmlhttprequest'
    : mode !== 'navigate' && mode !== 'nested-navigate'
}

interface Rendered {
  readonly realm: string
  readonly text: string
  /** Whether browsers open a prompt for it. */
  readonly prompts: boolean
}

// A challenge is a constant of its authenticator, and an application has one realm
const known = new WeakMap<Challenge, Rendered>()
const rendered = (challenge: Challenge, realm: string): Rendered => {
  const before = known.get(challenge)
  if (before?.realm === realm) return before
  const made = { realm, text: render(realm)(challenge), prompts: prompting.test(challenge.scheme) }
  known.set(challenge, made)
  return made
}
