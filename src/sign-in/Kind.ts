/**
 * A kind of ceremony: one way to prove something, such as a code by mail, a passkey or a provider. And the rules for
 * the intents of kinds, and for paths.
 */
import type { Evaluation } from '../core/Result.js'
import type { UnfinishedReason } from '../core/UnfinishedReason.js'
import * as is from '../core/checks.js'
import type { Check } from '../core/options.js'
import type { ProofDemand, ProofGiven } from '../core/Proof.js'
import type { OneTimeIds } from '../core/OneTimeIds.js'
import type { PasswordReason } from '../passwords/newPassword.js'
import type { PageField } from '../sessions/Page.js'

/** The purpose of a ceremony. `reset` and `verify` never sign in; `link` and `stepUp` are for a user who is signed in. */
export type Intent = 'signIn' | 'link' | 'stepUp' | 'reset' | 'verify'

/** Where a ceremony is shown: in the whole tab, or in a window that the page of its opener opened. */
export type Display = 'page' | 'popup'

/** A request as kinds see it. */
export interface Incoming {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  /** The prefix of koa-mount, which the path of a mounted application has lost. Default none. */
  readonly mount?: string | undefined
  /** The members of a JSON object or the fields of a form; without a prototype, and empty if nothing was sent. */
  readonly body: Readonly<Record<string, unknown>>
  /** The principal of the operation, if there is one. */
  readonly principal: unknown
  /** The address of the client, or its network, as limiters count it. */
  readonly address: string
}

/** One ceremony, as its kind sees it. */
export interface Ceremony {
  readonly intent: Intent
  /**
   * The identifier of its user: of the first proof, or of the session in which it began. For `verify` it is left out
   * if the caller was anonymous; for `signIn` and `reset`, the sign-in of the caller does not count.
   */
  readonly subject: string | undefined
  /** The public origin of the application, for links and redirects. */
  readonly origin: string
  /** The path of this origin that follows. */
  readonly returnTo: string
  readonly display: Display
  /** When it ends, in milliseconds since 1970. */
  readonly until: number
  /**
   * 256 secret bits in base64url for a purpose, such as `nonce`. They are derived from the key of the handle, and are
   * the same at the beginning and at the end. No other ceremony has them.
   */
  readonly secret: (purpose: string) => string
  /** Whether it began by `begin(kind, { conditional: true })`. It is not known at the end. */
  readonly conditional?: boolean | undefined
  /** One-time ids of the application, in all its processes. */
  readonly ids?: OneTimeIds | undefined
}

/** The answer to a beginning: a redirect (303), or a body that is answered as JSON; `null`: 204. */
export type Sent<B extends object | null = object | null> = { readonly redirect: string } | { readonly body: B }

/** A beginning of a kind: the content of the handle (JSON), and the answer with the handle. */
export interface Begun<Kept, B extends object | null = object | null> {
  readonly kept: Kept
  readonly send: (handle: string) => Sent<B> | Promise<Sent<B>>
}

/** The answer in a request: the handle, and the values that the kind checks. */
export interface Answered<Answer> {
  readonly handle: string
  readonly answer: Answer
  /** The reason given when the handle is genuine but belongs to another browser. Default `unknown`. */
  readonly elsewhere?: UnfinishedReason | undefined
}

type Accepted = boolean | PasswordReason

/** Signs strings for one kind, such as the links in its mails. The signatures fit no other kind. */
export interface Signer {
  readonly sign: (text: string) => string
  readonly verify: (text: string, signature: string) => boolean
}

/**
 * One way to prove something. It knows neither cookies nor stores nor users. Every function may throw: an
 * `UnavailableError` is an outage (503), anything else a 500.
 *
 * `Ask` is the type of `begin(kind, { ask })`, `Kept` of the content of the handle, `Answer` of the answer, `P` of the proof, and
 * `B` the body with which it begins.
 */
export interface Kind<Ask, Kept, Answer, P extends ProofGiven = ProofGiven, B extends object | null = object | null> {
  /** Such as `oidc:https://accounts.example`. A handle opens in no kind of another name, and an application has one kind of a name. */
  readonly name: string
  /** How long it lasts, in milliseconds. */
  readonly lifetime: number
  /** @internal The part of this package that made it, for `audit --asvs`. */
  readonly part?: string | undefined
  /** How many answers are checked. Default 1; more only for codes that people type. */
  readonly tries?: number | undefined
  /** Whether only the browser that began can finish. Default `true`. Otherwise it can only `reset` and `verify`. */
  readonly bound?: boolean | undefined
  /** The intents that it supports. Default `signIn`, `link` and `stepUp`; if not bound, `reset` and `verify`. */
  readonly intents?: ReadonlyArray<Intent> | undefined
  /** The fields of an answer that another site posts. Such a POST is answered with 303 to a GET of the same path. */
  readonly posted?: ReadonlyArray<string> | undefined
  /** Further fields of it, of at most 2,000 characters. They are encrypted in the address of that GET, because logs keep addresses. */
  readonly concealed?: ReadonlyArray<string> | undefined
  /** The longest path that follows, in characters; a longer one is `/`. Default 2000. For a link in a mail, which carries it. */
  readonly longestPath?: number | undefined
  /** Whether an answer that comes again, in the session that it made, leads where it led. Default `false`: `unknown`. */
  readonly leadsAgain?: boolean | undefined
  /** The proof that `begin(kind, { conditional: true })` demands. Left out: the kind knows no such beginning. */
  readonly conditional?: ProofDemand | undefined
  /** `false` for a kind that does everything in `check`, such as a registration: `finish` can do without a hook. Default `true`. */
  readonly needsHook?: boolean | undefined
  /**
   * Whether the body of the answer will do, such as a new password. Otherwise it is a 400 with the reason that is returned, or `weak`,
   * and no try is used up.
   */
  readonly accepts?: ((body: Incoming['body'], kept: Kept, answer: Answer) => Accepted | Promise<Accepted>) | undefined
  /** Fields that the page of its link shows, for a kind that is not bound. */
  readonly shows?: ((kept: Kept) => ReadonlyArray<PageField>) | undefined
  /** The fields of its pages. Left out: browsers get the same as others, because a script is needed, or another site is asked. */
  readonly form?: KindForm | undefined
  /** Begins. It may ask the network, and must not write. */
  readonly begin: (
    incoming: Incoming,
    ceremony: Ceremony,
    ask: Ask | undefined,
    signer: Signer,
  ) => Evaluation<Begun<Kept, B>>
  /** Finds the handle and the answer in a request. Sync, without effects. `undefined`: there is none (`unknown`). */
  readonly read: (incoming: Incoming, signer: Signer) => Answered<Answer> | undefined
  /** Checks the answer, after it was used once. It may ask the network. */
  readonly check: (kept: Kept, answer: Answer, ceremony: Ceremony) => Evaluation<P>
}

/** A kind of any content and proof. */
export type AnyKind = Kind<never, never, never>

/** A kind inside of this folder, which gives it back its own values alone: their types are gone. */
export type SomeKind = Kind<unknown, unknown, unknown>

export type SomeBeginner = Beginner<unknown, unknown>

/** The half of a kind that begins. */
export type Beginner<Ask, Kept, B extends object | null = object | null> = Omit<
  Kind<Ask, Kept, never, ProofGiven, B>,
  'read' | 'check'
>

export const intentsOf = ({ intents, bound }: Pick<AnyKind, 'intents' | 'bound'>): ReadonlyArray<Intent> => {
  const possible: ReadonlyArray<Intent> = bound === false ? ['reset', 'verify'] : ['signIn', 'link', 'stepUp']
  return intents === undefined ? possible : intents.filter((intent) => possible.includes(intent))
}

export const isForSubject = (intent: Intent): boolean => intent === 'link' || intent === 'stepUp'

// --- input of kinds: paths and digits

const MAX_PATH = 2000

/**
 * A path of this origin for every parser of URLs; `/` for anything else. A good path is returned as it is.
 *
 * @example
 * import { localPath } from 'koa-with-auth/sign-in'
 *
 * assert.strictEqual(localPath('/basket?page=2'), '/basket?page=2')
 * assert.strictEqual(localPath('//evil.example'), '/')
 */
export const localPath = (given: unknown): string => {
  if (typeof given !== 'string' || given.length > MAX_PATH) return '/'
  // printable ASCII without a blank and a backslash, which some parsers read as a slash
  if (!/^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/.test(given)) return '/'
  const [path = ''] = given.split(/[?#]/)
  if (/%(?:2f|5c|[01][0-9a-f]|7f)/i.test(path)) return '/'
  const base = 'https://local.invalid'
  const { origin, pathname } = new URL(given, base)
  // `/.//host` is resolved to `//host`
  return origin === base && !pathname.startsWith('//') ? given : '/'
}

/** The fields of a kind, for its pages. */
export interface KindForm {
  /** The fields that `begin` reads. */
  readonly begin?: ReadonlyArray<PageField> | undefined
  /** The fields that `finish` reads beside the handle. */
  readonly answer?: ReadonlyArray<PageField> | undefined
  /** The path of its `finish`. */
  readonly path?: string | undefined
}

/** A check of the path of a route, in printable ASCII, without a query and a fragment; `what` names the route, with an example. */
export const routePath = (what: string): Check =>
  is.like(/^\/(?!\/)[\x21-\x22\x24-\x3e\x40-\x5b\x5d-\x7e]*$/, `must be the path of ${what}`)

const MAX_TYPED = 128

/**
 * Typed or pasted text, as the code that is meant (NFKC), without blanks, punctuation, marks and invisible characters, such as
 * a soft hyphen; `undefined` if it is no string, or a long one.
 */
export const typedCode = (u: unknown): string | undefined =>
  typeof u === 'string' && u.length <= MAX_TYPED
    ? u.normalize('NFKC').replace(/[\s\p{P}\p{M}\p{Cf}\u2212\u30fc~]/gu, '')
    : undefined

const isDigit = (point: number): boolean => /^\p{Nd}$/u.test(String.fromCodePoint(point))

// Unicode has the ten digits of a script in a row, and the rows of some scripts follow each other (The Unicode Standard, §4.6)
const asciiDigit = (digit: string): string => {
  const point = digit.codePointAt(0) ?? 0
  let first = point
  while (isDigit(first - 1)) first--
  return String((point - first) % 10)
}

/** The digits that a person typed, of any script, in ASCII; `undefined` for anything else. */
export const typedDigits = (u: unknown): string | undefined => {
  const digits = typedCode(u)
  return digits !== undefined && /^\p{Nd}+$/u.test(digits) ? digits.replace(/\P{ASCII}/gu, asciiDigit) : undefined
}
