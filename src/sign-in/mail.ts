/**
 * Codes and links by mail. This library sends no mail: `send` is a hook.
 *
 * `emailSignIn` signs in. One mail holds a link and a code, and they are one ceremony. Only the browser that asked can finish
 * it: by the link if the mail is opened there, else by the code, which is typed where it began. So neither a scanner that
 * opens links nor a person who is talked into asking for a mail signs another person in.
 *
 * `passwordReset` and `emailVerification` are pressed in any browser, and never sign in. Their links carry a stamp of the data that they
 * change, so a change ends them.
 */
import * as E from 'fp-ts/lib/Either.js'
import * as AuthErrors from '../core/AuthError.js'
import { deepFreeze, errorInWords } from '../core/data.js'
import { constantTimeEqual } from '../crypto/secrets.js'
import * as is from '../core/checks.js'
import { bare, checkOptions, declareFactories, token, type Checks } from '../core/options.js'
import { counting } from '../guesses/Guess.js'
import type { Limiter, Limiters } from '../guesses/Limiter.js'
import type { Result } from '../core/Result.js'
import type { NewPassword } from '../passwords/newPassword.js'
import { passwordField } from './pages.js'
import { usualLimiters } from './countFailures.js'
import type { PageField } from '../sessions/Page.js'
import { routePath, typedDigits, type Ceremony, type Incoming, type Kind } from './Kind.js'

// --- addresses and links

const MAX_ADDRESS = 254

/**
 * The address of a mail, trimmed and in lower case; `undefined` for anything but a single address in ASCII (RFC 5321
 * without quoted names). So two spellings are one account, and no second recipient comes along.
 *
 * @example
 * import { normalizeEmail } from 'koa-with-auth/sign-in'
 *
 * assert.strictEqual(normalizeEmail(' Anna@Shop.example '), 'anna@shop.example')
 * assert.strictEqual(normalizeEmail('a@x.example,b@x.example'), undefined)
 */
export const normalizeEmail = (given: unknown): string | undefined => {
  if (typeof given !== 'string' || given.length > MAX_ADDRESS + 10) return undefined
  const address = given.trim()
  if (address.length > MAX_ADDRESS) return undefined
  // tested before the case is changed, which makes ASCII of some other characters
  return /^[\w!#$%&'*+/=?^`{|}~.-]{1,64}@[a-z\d](?:[a-z\d.-]*[a-z\d])?$/i.test(address)
    ? address.toLowerCase()
    : undefined
}

// Shows only input of the client itself
const noAddress: Result<never> = deepFreeze(
  E.left({ ...AuthErrors.unfinished('malformed'), detail: 'One mail address is needed, as "address" in the body.' }),
)

const codeField = { name: 'code', type: 'text', autocomplete: 'one-time-code', inputmode: 'numeric' } as const

const mailField = { name: 'address', type: 'email', autocomplete: 'email' } as const

// The hidden members of the page's form, or the link itself
const linkMembers = ({ method, body, query }: Incoming) => {
  const [handle, key] = ['handle', 'key'].map((name) =>
    method === 'POST' ? (body[name] ?? query.get(name)) : undefined,
  )
  return { handle, key, code: body['code'] }
}

type Calling = <A extends object>(hook: string, given: A) => A

// The fate of a mail must change no answer, neither by its content nor by its time. So nothing waits for it. `send` says
// which hook it calls, and with which arguments, because a warning must not contain them
const sendLater = (where: string, send: (calling: Calling) => unknown): void => {
  let hook = 'send'
  let secrets: ReadonlyArray<string> = []
  const calling: Calling = (name, given) => {
    hook = name
    secrets = Object.values(given).flatMap((value: unknown) => (typeof value === 'string' ? secretParts(value) : []))
    return given
  }
  setImmediate(() => {
    Promise.resolve()
      .then(() => send(calling))
      .catch((error: unknown) =>
        process.emitWarning(`${where}: ${hook} failed: ${errorInWords(error, secrets)}`, 'SignInWarning'),
      )
  })
}

// An address and its name, a link and its content, a code. A shorter name says little, and is in many messages
const secretParts = (value: string): ReadonlyArray<string> =>
  [value, ...(value.includes('://') ? new URL(value).searchParams.values() : value.split('@', 1))].filter(
    (part) => part.length > 3,
  )

// --- options, and the parts that all kinds have

interface MailOptions {
  /** The path of the link: a GET shows `linkPage`, a POST is `finish` of the kind. The prefix of koa-mount is added. */
  readonly path: string
  /** Counts requests for mails, and wrong codes, by address of the mail and of the client. Default: as `passwordSignIn` counts. */
  readonly limiter?: Limiter | Limiters | undefined
  /** A name that distinguishes this kind from another kind of the same function, such as `staff`. */
  readonly name?: string | undefined
  /** How long a mail is good, in milliseconds. Default 10 minutes (OWASP ASVS 5.0 §6.5.5); 1 hour if it only verifies an address. */
  readonly lifetime?: number | undefined
}

const MINUTE = 60_000
// Mail programs cut links of more than 2,000 characters. A link has an address of at most 254, and a path, encrypted
const LONGEST_PATH = 1000

const mailing = <O extends MailOptions>(
  where: 'emailSignIn' | 'passwordReset' | 'emailVerification',
  options: O,
  checks: Checks<O>,
  usual: number,
) => {
  const given = checkOptions(where, options, checks)
  const { limiter = usualLimiters(), lifetime = usual } = given
  return bare({ ...given, where, lifetime, count: counting(limiter, where) })
}

type Mailing<O extends MailOptions = MailOptions> = ReturnType<typeof mailing<O>>

const mailKind = ({ where, name, lifetime, path }: Mailing, family: string, answer: ReadonlyArray<PageField>) => ({
  name: name === undefined ? family : `${family}:${name}`,
  part: where,
  lifetime,
  longestPath: LONGEST_PATH,
  leadsAgain: true,
  form: { begin: [mailField], answer, path },
})

// Begins for the address that was asked for, or sent, if it is none too many
const beginMail = (
  { where, count }: Mailing,
  { body, address: from }: Incoming,
  ask: string | undefined,
  post: (address: string, handle: string, calling: Calling) => unknown,
) => {
  const address = normalizeEmail(ask ?? body['address'])
  if (address === undefined) return noAddress
  const send = (handle: string) => {
    sendLater(where, (calling) => post(address, handle, calling))
    return { body: where === 'emailSignIn' ? { handle } : null }
  }
  return count(address, from, () => E.right({ kept: { address }, send }), E.isRight)
}

// What the key of a link signs: it is good for its own path, as a route of another kind has another one
const signedText = ({ path }: Mailing, handle: string, ...stamp: ReadonlyArray<string>): string =>
  JSON.stringify([handle, ...stamp, path])

const linkTo = (
  { path }: Mailing,
  { mount = '' }: Incoming,
  { origin }: Ceremony,
  members: { readonly handle: string; readonly key: string },
): string => {
  // the path that browsers see
  const seen = path.startsWith(`${mount}/`) ? path : `${mount}${path}`
  return `${origin}${seen}?${new URLSearchParams({ ...members }).toString()}`
}

// --- signing in

/** A mail with a link. */
export interface LinkMail {
  /** One address, as `normalizeEmail` writes it. */
  readonly address: string
  readonly link: string
}

/** A mail that signs in. */
export interface SignInMail extends LinkMail {
  /** Eight digits. */
  readonly code: string
}

/** How mails sign in. */
export interface EmailSignInOptions extends MailOptions {
  /**
   * Sends the mail if the address has an account, and does nothing otherwise. It runs after the response, so neither its
   * time nor its failure shows which addresses exist. A failure is a process warning, without the arguments of `send`.
   */
  readonly send: (mail: SignInMail) => unknown
}

const MAIL_TRIES = 3
const CODE_DIGITS = 8

const mailChecks: Checks<EmailSignInOptions> = {
  send: is.hook(1),
  path: routePath("a route, such as '/sign-in/mail/link'"),
  limiter: is.unchecked,
  name: is.maybe(is.nameLike(token)),
  lifetime: is.maybe(is.positive),
}

// 48 bits of a secret: the remainder favours no code noticeably
const codeFrom = (secret: string): string =>
  String(Buffer.from(secret, 'base64url').readUIntBE(0, 6) % 10 ** CODE_DIGITS).padStart(CODE_DIGITS, '0')

// A tag of its own, because an inherited property must not turn a code into a link
type MailAnswer = { readonly by: 'link' } | { readonly by: 'code'; readonly code: unknown; readonly from: string }

/**
 * A kind that signs in by a mail with a link and a code. `begin` reads `address` of the body, and answers `{ handle }`,
 * for unknown addresses, too. `finish` takes `{ handle, code }`, or the link by POST. Three tries; the link takes one.
 * The proof is `{ method: 'mail', subject: address }`. Pressed in another browser, the link is a 403 `anotherBrowser`, and
 * nothing is used up. Throws a TypeError for options that cannot work.
 *
 * @example
 * import { emailSignIn } from 'koa-with-auth/sign-in'
 *
 * const mail = emailSignIn({
 *   path: '/sign-in/mail/link',
 *   send: ({ address, link, code }) => console.log(address, link, code), // your mailer, if the address has an account
 * })
 */
export const emailSignIn = (
  options: EmailSignInOptions,
): Kind<string, { readonly address: string }, MailAnswer, { method: string; subject: string }> => {
  const self = mailing('emailSignIn', options, mailChecks, 10 * MINUTE)
  // a code is good for its own path, as a route of another `emailSignIn` has another one
  const purpose = `code ${self.path}`
  return {
    ...mailKind(self, 'mail', [codeField]),
    tries: MAIL_TRIES,
    begin: (incoming, ceremony, ask, signer) =>
      beginMail(self, incoming, ask, (address, handle, calling) => {
        const link = linkTo(self, incoming, ceremony, { handle, key: signer.sign(signedText(self, handle)) })
        return self.send(calling('send', { address, link, code: codeFrom(ceremony.secret(purpose)) }))
      }),
    read: (incoming, signer) => {
      const { handle, key, code } = linkMembers(incoming)
      if (typeof handle !== 'string') return undefined
      if (typeof key !== 'string') return { handle, answer: { by: 'code', code, from: incoming.address } }
      return signer.verify(signedText(self, handle), key)
        ? { handle, answer: { by: 'link' }, elsewhere: 'anotherBrowser' }
        : undefined
    },
    check: ({ address }, answer, { secret }) => {
      const proof = E.right({ method: 'mail', subject: address })
      if (answer.by === 'link') return proof
      return self.count(address, answer.from, () => {
        const code = typedDigits(answer.code)
        const isRight = code !== undefined && constantTimeEqual(code, codeFrom(secret(purpose)))
        return isRight ? proof : E.left(AuthErrors.unfinished('wrong'))
      })
    },
  }
}

// --- resetting and verifying

/** The account of a link. */
export interface LinkAccount {
  /** The identifier of the user. */
  readonly id: string
  /** The data that the link changes, such as the hash of the password, and the address. A change ends the link. */
  readonly stamp: string
}

/** How links by mail work. */
export interface EmailVerificationOptions extends MailOptions {
  /**
   * The account of an address; `undefined` if there is none, so that no mail is sent. For `emailVerification`, `subject` is the identifier
   * of the user who was signed in when it began, so that a new address is verified for that account: `{ id: subject, stamp }`.
   */
  readonly accountOf: (
    address: string,
    asked: { readonly subject: string | undefined },
  ) => LinkAccount | undefined | Promise<LinkAccount | undefined>
  /** Sends the mail. It runs after the response; see `emailSignIn`. */
  readonly send: (mail: LinkMail) => unknown
}

/** How links set a new password. */
export interface PasswordResetOptions extends EmailVerificationOptions {
  /**
   * Whether a new password will do, such as one of at least 15 characters that is not on a list of those that leaked (NIST SP 800-63B).
   * Otherwise, as for an empty one, it is a 400 `weak`, and the link stays good. Default: the hook of `finish` decides. `undefined` is a
   * TypeError.
   */
  readonly isGood?: (
    password: string,
    account: LinkAccount & { readonly address: string },
  ) => boolean | NewPassword | Promise<boolean | NewPassword>
}

const linkChecks: Checks<PasswordResetOptions> = {
  ...mailChecks,
  accountOf: is.hook(2),
  isGood: is.ifWritten(is.hook(2)),
}

/** A kind that is pressed in any browser. */
export type LinkKind = Kind<
  string,
  { readonly address: string },
  { readonly isGenuine: (stamp: string) => boolean },
  LinkProof
>

/** The proof of a link in a mail. */
export interface LinkProof {
  readonly method: string
  /** The identifier of the user. */
  readonly subject: string
  /** The stamp of the link, for the condition of the write: of two links at once, only the first counts. */
  readonly stamp: string
  /** The address that the mail was sent to. */
  readonly address: string
}

type Links = Mailing<PasswordResetOptions>

const accountFor = async (
  { where, accountOf }: Links,
  address: string,
  subject: string | undefined,
): Promise<LinkAccount | undefined> => {
  // databases answer null for a row that is not there
  const account: Partial<LinkAccount> | null | undefined = await accountOf(address, { subject })
  if (account === undefined || account === null) return undefined
  const { id, stamp } = account
  if (typeof id === 'string' && id !== '' && typeof stamp === 'string') return { id, stamp }
  throw new TypeError(`${where}({ accountOf }) must return { id, stamp }: the identifier of the user, and a string`)
}

const resetPart = (self: Links): Partial<LinkKind> => ({
  shows: ({ address }) => [
    { name: 'address', type: 'email', autocomplete: 'username', value: address, readonly: true },
  ],
  ...(self.isGood !== undefined && {
    accepts: ({ password }, { address }, { isGenuine }) => isGoodFor(self, password, address, isGenuine),
  }),
})

const linkKind = (intent: 'reset' | 'verify', self: Links): LinkKind => ({
  ...mailKind(self, intent, intent === 'reset' ? [passwordField] : []),
  bound: false,
  intents: [intent],
  ...(intent === 'reset' && resetPart(self)),
  begin: (incoming, ceremony, ask, signer) =>
    beginMail(self, incoming, ask, async (address, handle, calling) => {
      calling('accountOf', { address })
      const account = await accountFor(self, address, ceremony.subject)
      if (account === undefined) return
      const key = signer.sign(signedText(self, handle, account.stamp))
      await self.send(calling('send', { address, link: linkTo(self, incoming, ceremony, { handle, key }) }))
    }),
  read: (incoming, signer) => {
    const { handle, key } = linkMembers(incoming)
    if (typeof handle !== 'string' || typeof key !== 'string') return undefined
    return { handle, answer: { isGenuine: (stamp) => signer.verify(signedText(self, handle, stamp), key) } }
  },
  check: async ({ address }, { isGenuine }, { subject }) => {
    const account = await accountFor(self, address, subject)
    return account !== undefined && isGenuine(account.stamp)
      ? E.right({ method: 'mail', subject: account.id, stamp: account.stamp, address })
      : E.left(AuthErrors.unfinished('unknown'))
  },
})

const isGoodFor = async (self: Links, password: unknown, address: string, isGenuine: (stamp: string) => boolean) => {
  const account = await accountFor(self, address, undefined)
  // no hook looks at the input of a forged or older link, which `check` refuses
  if (account === undefined || !isGenuine(account.stamp)) return true
  if (typeof password !== 'string' || password === '') return false
  const answer = await self.isGood?.(password, { ...account, address })
  return typeof answer === 'object' ? answer.ok || answer.reason : (answer ?? false)
}

/**
 * A kind that lets a user set a new password by a link. `begin` reads `address` of the body, and answers 204, for unknown
 * addresses, too. The hook of `finish` gets the user's identifier as `proof.subject`, and the input as `body`. It
 * must compare `proof.stamp` in the write, set the password, and call `logOutEverywhere`. No user is signed in. Throws a
 * TypeError for options that cannot work.
 *
 * @example
 * import { passwordReset } from 'koa-with-auth/sign-in'
 *
 * const users = new Map([['anna@shop.example', { id: 'anna', hash: '$argon2id$...' }]])
 * const reset = passwordReset({
 *   path: '/reset/link',
 *   accountOf: (address) => {
 *     const user = users.get(address)
 *     return user && { id: user.id, stamp: `${user.hash} ${address}` }
 *   },
 *   send: ({ address, link }) => console.log(address, link), // your mailer
 * })
 */
export const passwordReset = (options: PasswordResetOptions): LinkKind =>
  linkKind('reset', mailing('passwordReset', options, linkChecks, 10 * MINUTE))

/**
 * A kind that verifies the address of a user by a link. `begin(verify, { ask: (ctx) => address })`, behind `sessionAuth()`;
 * it answers 204. The hook of `finish` gets the user's identifier as `proof.subject`. No user is signed in. Throws a
 * TypeError for options that cannot work.
 */
export const emailVerification = (options: EmailVerificationOptions): LinkKind =>
  linkKind('verify', mailing('emailVerification', options, linkChecks, 60 * MINUTE))

declareFactories({ emailSignIn, passwordReset, emailVerification })
