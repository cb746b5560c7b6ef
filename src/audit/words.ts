/**
 * What an authenticator demands, in words: `bearer, or API key in header X-API-Key`.
 *
 * Different trees have different words: a group within another one is in parentheses. The words say what a client
 * sends, and what must have been granted. They cannot say what a hook decides.
 */
import { challengesOf, schemeOf, type Description, type Leaf } from '../core/Description.js'
import type { SecurityScheme } from '../core/SecurityScheme.js'

/** A description in words. */
export const inWords = (description: Description): string => {
  switch (description._tag) {
    case 'Leaf':
      return leafInWords(description)
    case 'AnyOf': {
      const members = description.members.map(listed).join(', or ')
      return description.firstPresent ? `first sent of (${members})` : members
    }
    case 'AllOf':
      return `all of (${description.members.map(listed).join(', and ')})`
    case 'Optional':
      return `${description.lenient ? 'lenient' : 'optional'} ${unit(description.member)}`
    case 'Scoped':
      return description.scopes.length > 0
        ? `${unit(description.member)} with scopes ${description.scopes.join(', ')}`
        : `authorized ${unit(description.member)}`
  }
}

const parenthesized = (description: Description): string => `(${inWords(description)})`

// As a member of a list, without commas outside of parentheses
const listed = (description: Description): string => {
  const hasCommas = description._tag === 'Scoped' && description.scopes.length > 0
  return isAlternatives(description) || hasCommas ? parenthesized(description) : inWords(description)
}

// As something that one word before it refers to
const unit = (description: Description): string =>
  isAlternatives(description) || description._tag === 'Scoped' ? parenthesized(description) : inWords(description)

const isAlternatives = (description: Description): boolean =>
  description._tag === 'AnyOf' && !description.firstPresent && description.members.length > 1

/** One kind of credential in words. */
export const leafInWords = (leaf: Leaf): string => {
  const scheme = schemeOf(leaf)
  const words = scheme === undefined ? undescribed(leaf) : schemeInWords(scheme, leaf)
  const named = leaf.schemeName === undefined ? words : `${words} "${leaf.schemeName}"`
  return leaf.demands === undefined ? named : `${named} of ${leaf.demands}`
}

const schemeInWords = (scheme: SecurityScheme, leaf: Leaf): string => {
  switch (scheme.type) {
    case 'apiKey': {
      const what = challengeName(leaf) === 'Session' ? 'session' : 'API key'
      return `${what} in ${scheme.in === 'query' ? 'query parameter' : scheme.in} ${scheme.name}`
    }
    case 'http':
      return scheme.scheme.toLowerCase()
    default:
      return schemeNames[scheme.type]
  }
}

/** The words for schemes that only their type describes. */
export const schemeNames = {
  oauth2: 'OAuth 2.0',
  openIdConnect: 'OpenID Connect',
  mutualTLS: 'client certificate',
}

// A plain function, or a kind of which only the challenge is known
const undescribed = (leaf: Leaf): string => {
  const name = challengeName(leaf)
  return name === undefined || name === 'Custom' ? 'custom' : `custom ${name}`
}

const challengeName = (leaf: Leaf): string | undefined => challengesOf(leaf)[0]?.scheme
