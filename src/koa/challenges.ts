/**
 * `WWW-Authenticate`: the challenges of an answer, each rendered once, in a way that opens no prompt where a script asked.
 */
import type { Context, Request } from 'koa'
import { render, type Challenge } from '../core/Challenge.js'

/** Sets the field, one line for each challenge; without any it is left alone. */
export const setChallenges = (ctx: Context, challenges: ReadonlyArray<Challenge>, realm: string): void => {
  if (challenges.length === 0) return
  const quiet = isScript(ctx.request)
  const lines = challenges.map((challenge) => {
    const text = rendered(challenge, realm)
    return quiet && prompting.test(text) ? `x${text}` : text
  })
  ctx.res.setHeader('WWW-Authenticate', lines.length === 1 ? lines[0]! : [...new Set(lines)])
}

// The schemes for which browsers open a prompt of their own
const prompting = /^(?:Basic|Digest|Negotiate|NTLM) /i

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

// A challenge is a constant of its authenticator, and an application has one realm
const texts = new WeakMap<Challenge, { readonly realm: string; readonly text: string }>()
const rendered = (challenge: Challenge, realm: string): string => {
  const known = texts.get(challenge)
  if (known?.realm === realm) return known.text
  const text = render(realm)(challenge)
  texts.set(challenge, { realm, text })
  return text
}
