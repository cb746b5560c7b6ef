/**
 * Writes `WWW-Authenticate`. Each challenge is rendered once. If a script sent the request, the challenges open no
 * prompt.
 */
import type { Context, Request } from 'koa'
import { render, type Challenge } from '../core/Challenge.js'

/** Sets the field, with one line for each challenge. Without challenges, it is left as it is. */
export const setChallenges = (ctx: Context, challenges: ReadonlyArray<Challenge>, realm: string): void => {
  const [first] = challenges
  if (first === undefined) return
  const line = (challenge: Challenge): string => {
    const { text, prompts } = rendered(challenge, realm)
    return prompts && isScript(ctx.request) ? `x${text}` : text
  }
  ctx.res.setHeader('WWW-Authenticate', challenges.length === 1 ? line(first) : [...new Set(challenges.map(line))])
}

// The schemes for which browsers open a prompt
const prompting = /^(?:Basic|Digest|Negotiate|NTLM)$/i

/**
 * Whether a script in a page sent the request, by `fetch` or XMLHttpRequest. Browsers send Sec-Fetch-Mode together with
 * Sec-Fetch-Site. A client that sends only the first (Node's own `fetch`) has no prompt.
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
