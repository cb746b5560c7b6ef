/**
 * Scopes for each tool of an MCP server, before the body is read: MCP 2026-07-28 puts the method and the name of the tool into header
 * fields, and a server of this revision refuses a body that says something else.
 */
import { isUtf8 } from 'node:buffer'
import * as E from 'fp-ts/lib/Either.js'
import * as O from 'fp-ts/lib/Option.js'
import type { Request } from '../core/Request.js'
import { insufficient, raised, type AuthError } from '../core/AuthError.js'
import { decideOf, wrapping, type Authenticator, type Halves } from '../core/Authenticator.js'
import { checkDemanding } from '../core/authorize.js'
import { noted, withChallenges, type Scoped } from '../core/Description.js'
import { readersOf } from '../core/granted.js'
import { evidenceOf } from '../core/Evidence.js'
import { fromHeader } from '../core/RequestFields.js'
import { andThen } from '../core/Result.js'
import { httpError } from '../core/Settings.js'
import { declareCondition, declareFactory, isPlain, isScope } from '../core/options.js'
import { scopesOf, lastToken } from '../jwt/tokenKind.js'

/** The scopes of each name, by method: `{ 'tools/call': { 'files.write': ['files:write'], '*': [] } }`. */
export type McpScopes = Readonly<Record<string, Readonly<Record<string, ReadonlyArray<string>>>>>

const caller = 'mcpScopes({ method: { name: [scopes] } })'

const checkScopes = (scopes: McpScopes): McpScopes => {
  if (!isPlain(scopes) || Object.keys(scopes).length === 0)
    throw new TypeError(`${caller}: pass an object of at least one method`)
  for (const [method, names] of Object.entries(scopes)) {
    if (!isPlain(names)) throw new TypeError(`${caller}: ${method} must be an object of names`)
    for (const [name, needed] of Object.entries<unknown>(names)) {
      if (Array.isArray(needed) && needed.every(isScope)) continue
      throw new TypeError(`${caller}: ${method}, ${name} must be an array of scopes`)
    }
  }
  return scopes
}

/**
 * A condition on the tool that a request calls. All missing scopes are in one challenge, a 403 `insufficient_scope`. A method that is no
 * key passes. A name that is not listed is a 403, unless `'*'` is. A POST without `Mcp-Method`, without the `Mcp-Name` that is asked
 * for, or with a field twice is a 400. The fields do not prove the content of the body: a function behind it must compare them, such as the
 * SDK's `createMcpHandler(server, { legacy: 'reject' })`. Throws a TypeError for scopes that cannot be any.
 *
 * @example
 * import { withAuth } from 'koa-with-auth'
 * import { httpJwt, mcpScopes } from 'koa-with-auth/jwt'
 *
 * const jwt = httpJwt({ issuer: 'https://login.example/', audience: 'https://mcp.example' })
 * const guard = withAuth(jwt, mcpScopes({ 'tools/call': { 'files.write': ['files:write'], '*': [] } }))
 */
export const mcpScopes = (scopes: McpScopes): (<P>(self: Authenticator<P>) => Authenticator<P>) => {
  const given = checkScopes(scopes)
  const condition = <P>(self: Authenticator<P>): Authenticator<P> =>
    // Safe: it lets in the same principals
    wrapping('mcpScopes(...)(a)', self, (member) => demandingScopes(given, member)) as Authenticator<P>
  return declareCondition('mcpScopes', condition)
}

declareFactory('mcpScopes', mcpScopes)

const demandingScopes = (scopes: McpScopes, member: Authenticator<unknown>): Halves => {
  checkDemanding('mcpScopes(...)(a)', member.description)
  const decidedBy = `mcpScopes ${mcpScopesWords(scopes)}`
  const description = noted<Scoped>({ _tag: 'Scoped', member: member.description, scopes: [] }, { decidedBy })
  const authenticate = decideOf(member)
  const readers = readersOf(member)
  const failed = (error: AuthError) => E.left(withChallenges(member.description, error))
  return {
    description,
    decide: (attempt) =>
      andThen(authenticate(attempt), (result) => {
        if (E.isLeft(result)) return result
        const needed = scopesNeeded(scopes, attempt.request)
        if (needed === 'unreadable')
          return failed(raised(httpError(400, 'Mcp-Method or Mcp-Name is missing, or was sent twice', false)))
        if (needed === 'unlisted') return failed(insufficient())
        if (needed.length === 0) return result
        const token = lastToken(evidenceOf(result).accepted)
        const granted = new Set(
          token === undefined ? readers.flatMap((read) => read(result.right) ?? []) : scopesOf(token.claims()),
        )
        const missing = needed.filter((scope) => !granted.has(scope))
        return missing.length === 0 ? result : failed(insufficient(missing))
      }),
  }
}

const mcpScopesWords = (scopes: McpScopes): string =>
  Object.entries(scopes)
    .map(([method, names]) => {
      const each = Object.entries(names).map(([name, needed]) => `${name}: ${needed.join(' ') || 'none'}`)
      return `${method} (${each.join('; ')})`
    })
    .join(', ')

const methodField = fromHeader('Mcp-Method')
const nameField = fromHeader('Mcp-Name')

// The scopes of a request. Only a POST calls something; a GET opens a stream
const scopesNeeded = (scopes: McpScopes, request: Request): ReadonlyArray<string> | 'unreadable' | 'unlisted' => {
  const method = methodField(request)
  if (O.isNone(method)) return request.method === 'POST' ? 'unreadable' : []
  if (typeof method.value !== 'string') return 'unreadable'
  const names = Object.hasOwn(scopes, method.value) ? scopes[method.value] : undefined
  if (names === undefined) return []
  const sent = nameField(request)
  const name = O.isSome(sent) && typeof sent.value === 'string' ? decodedName(sent.value) : undefined
  if (name === undefined) return 'unreadable'
  if (Object.hasOwn(names, name)) return names[name] ?? []
  return Object.hasOwn(names, '*') ? (names['*'] ?? []) : 'unlisted'
}

const encodedName = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/

// SEP-2243: a name that does not fit a header is written as `=?base64?...?=`
const decodedName = (value: string): string | undefined => {
  const base64 = encodedName.exec(value)?.[1]
  if (base64 === undefined) return value === '' ? undefined : value
  const bytes = Buffer.from(base64, 'base64')
  return bytes.toString('base64') === base64 && isUtf8(bytes) ? bytes.toString('utf8') : undefined
}
