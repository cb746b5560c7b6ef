/** What a browser takes to a provider: the parameters of an authorization request, and what of them an answer is checked against. */
import {
  checkOptions,
  list,
  maybe,
  typeName,
  nonEmpty,
  oneOf,
  positive,
  type Check,
  type Checks,
} from '../../core/options.js'
import { routePath } from '../Kind.js'

/** What one sign-in asks of the provider (OpenID Connect Core §3.1.2.1). */
export interface Asking {
  /** `login` asks for the password again, `none` for no page at all. */
  readonly prompt?: 'none' | 'login' | 'consent' | 'select_account' | 'create' | undefined
  /** Who is expected, such as an e-mail address. The provider may ignore it. */
  readonly loginHint?: string | undefined
  /**
   * How long ago the user may have signed in at the provider, in milliseconds; 0 means now. The answer is refused if it
   * was longer ago, or if the provider does not say when.
   */
  readonly maxAge?: number | undefined
  /** Classes of authentication (`acr`), the best one first. The answer is refused if it is of none of them. */
  readonly acrValues?: ReadonlyArray<string> | undefined
  /** The languages of the provider's pages, such as `de`. */
  readonly uiLocales?: ReadonlyArray<string> | undefined
}

const words: Check = (where, value) => {
  list(where, value)
  // Safe: `list` refuses anything but an array
  const all = value as ReadonlyArray<unknown>
  if (all.length > 0 && all.every((one) => typeof one === 'string' && /^[\x21-\x7e]+$/.test(one))) return
  throw new TypeError(`${where} must be an array of strings without blanks, and none of them empty`)
}

const checks: Checks<Asking> = {
  prompt: maybe(oneOf('none', 'login', 'consent', 'select_account', 'create')),
  loginHint: maybe(nonEmpty),
  maxAge: maybe((where, value) => {
    if (value !== 0) positive(where, value)
  }),
  acrValues: maybe(words),
  uiLocales: maybe(words),
}

/** Checks what a sign-in asks. Throws a TypeError for what no provider understands. */
export const askingOf = (where: string, asking: Asking): Asking => checkOptions(where, asking, checks)

/** What an answer is checked against. It travels in the handle. */
export interface Expected {
  /** In seconds. */
  readonly maxAge?: number | undefined
  readonly acr?: ReadonlyArray<string> | undefined
}

/** What an answer to these questions is checked against. */
export const expectedOf = ({ maxAge, acrValues }: Asking): Expected => ({
  ...(maxAge !== undefined && { maxAge: Math.floor(maxAge / 1000) }),
  ...(acrValues !== undefined && { acr: acrValues }),
})

/** The parameters of these questions. */
export const parametersOf = ({ prompt, loginHint, maxAge, acrValues, uiLocales }: Asking): Record<string, string> => ({
  ...(prompt !== undefined && { prompt }),
  ...(loginHint !== undefined && { login_hint: loginHint }),
  ...(maxAge !== undefined && { max_age: String(Math.floor(maxAge / 1000)) }),
  ...(acrValues !== undefined && { acr_values: acrValues.join(' ') }),
  ...(uiLocales !== undefined && { ui_locales: uiLocales.join(' ') }),
})

/** The parameters that belong to the protocol. The security of a sign-in depends on them. */
const own: ReadonlySet<string> = new Set([
  'client_id',
  'redirect_uri',
  'response_type',
  'response_mode',
  'scope',
  'display',
  'state',
  'nonce',
  'code_challenge',
  'code_challenge_method',
  'request',
  'request_uri',
  'registration',
  ...Object.keys(parametersOf({ prompt: 'none', loginHint: 'a', maxAge: 0, acrValues: ['a'], uiLocales: ['a'] })),
])

/** Parameters of a provider's own, such as `access_type` of Google's. */
export const furtherParameters: Check = (where, value) => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new TypeError(`${where} must be an object of strings, not ${typeName(value)}`)
  }
  for (const [name, text] of Object.entries(value)) {
    if (own.has(name))
      throw new TypeError(`${where}: ${name} belongs to the protocol; there is an option for it, or none`)
    nonEmpty(`${where}: ${name}`, text)
  }
}

/** Scopes, without blanks. */
export const scopes: Check = words

/** The path of a route to which a provider leads back. */
export const callbackPath: Check = routePath("the callback's route, such as '/sign-in/google/callback'")
