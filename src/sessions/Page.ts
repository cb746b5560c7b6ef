/** A page of a sign-in, as data: `sessions(app, { pages })` makes HTML of it. And the texts of the library's own pages. */
import type { Context } from 'koa'
import * as is from '../core/checks.js'
import { checkOptions, type Check, type Checks } from '../core/options.js'

/** One input of a form. */
export interface PageField {
  readonly name: string
  readonly type: 'text' | 'email' | 'password' | 'checkbox' | 'hidden'
  readonly autocomplete: string
  /** `numeric` for a code of digits: phones show them. */
  readonly inputmode?: 'numeric' | undefined
  /** Whether it only shows its value, such as the account that a password manager saves a new password for. */
  readonly readonly?: true | undefined
  /** The value that was typed before, or that a hidden field sends; a checkbox that has one is checked. Never a password. */
  readonly value?: string | undefined
}

/** A page, for a browser that asks for one (`Accept: text/html`). */
export interface Page {
  /** The name of the kind, such as `mail`; `password` for `passwordSignIn`, `link` for a `linkPage` with texts of its own. */
  readonly kind: string
  /** A form that begins, a form that answers (without fields: the answer comes by a mail), the end, or a failure. */
  readonly step: 'begin' | 'answer' | 'done' | 'failed'
  /** The hidden field `handle` of the form. */
  readonly handle?: string
  /** `reason` is that of a failure, such as `wrong` or `late`, or its tag, such as `throttled`, `forged` or `unavailable`. */
  readonly failure?: { readonly reason: string }
  /** The other fields of the form. Without fields and without a handle there is nothing to send. */
  readonly fields: ReadonlyArray<PageField>
  /** A path of this site: where the form is posted; without a form, where a link leads. */
  readonly action: string
  /** For the end of a popup: a script that leads its opener on, and closes it. Without it, the link leads on. */
  readonly script?: string
}

/**
 * Makes the HTML of a page: a string, a promise of it, or `undefined` after `ctx.render`. If it writes nothing, the page of the
 * library is sent. If it throws, the answer is a 500, and no user is signed in.
 */
export type Pages = (page: Page, ctx: Context) => unknown

/** The texts of the library's own pages, in English. A name is that of a step, of a field, or of a reason. */
export const english = {
  begin: 'Sign in',
  answer: 'Sign in',
  done: 'That is done',
  failed: 'That did not work',
  sent: 'Check your mail',
  sentText: 'If the address has an account, a mail is on its way.',
  'code.answer': 'One more step',
  'code.answerText': 'Type the code of your authenticator app, or a recovery code.',
  'mail.answer': 'Check your mail',
  'mail.answerText':
    'If the address has an account, a mail is on its way. Type its code here, or open its link in this browser.',
  'mail.link': 'Sign in',
  'reset.begin': 'Forgot the password?',
  'reset.link': 'New password',
  'reset.done': 'The new password is set',
  'reset.unknown':
    'This link was used already, or is too old. If you have set a password with it, sign in with that one.',
  'verify.begin': 'Your address',
  'verify.link': 'Your address',
  'verify.linkText': 'It is yours if this mail came to you.',
  'verify.done': 'Your address is verified',
  'verify.unknown': 'This link was used already, or is too old. Perhaps your address is verified: sign in to see it.',
  username: 'Name',
  email: 'E-mail address',
  address: 'E-mail address',
  password: 'Password',
  'new-password': 'New password',
  code: 'Code',
  remember: 'Stay signed in',
  send: 'Continue',
  goOn: 'Continue',
  other: 'Try again.',
  malformed: 'Fill in each field, and try again.',
  weak: 'This password is too short, or too common. Choose another one.',
  short: 'This password is too short. Choose a longer one, such as four words.',
  long: 'This password is too long.',
  common: 'Many people have this password, so it is tried first. Choose another one.',
  context: 'This password contains your name, your address or the name of this site. Choose another one.',
  breached: 'This password has leaked from some site, so it is tried first. Choose another one.',
  wrong: 'That was not right. Check what you typed, and try again.',
  throttled: 'That was wrong too often. Try again later.',
  unavailable: 'That is not possible at the moment. Try again in a few seconds.',
  forged: 'Another site sent this request, so nothing was done.',
  late: 'That took too long. Begin again.',
  unknown: 'This was used already, or began in another browser. Begin again.',
  declined: 'You cancelled at the provider.',
  provider: 'The answer of the provider was not good. Try again.',
  anotherUser: 'That belongs to another account.',
  anotherBrowser: 'You began in another browser. Go back to it, and type the code of the mail there.',
  noAccount: 'There is no account for that.',
  absent: 'Sign in first.',
} as const

/** Texts by their names; those of a step may begin with the name of a kind, such as `reset.done`. */
export type PageTexts = { readonly [Name in keyof typeof english]?: string | undefined }

/** The check of texts by language, such as `{ de: { begin: 'Anmelden' } }`. */
export const textsByLanguage: Check = (where, value) => {
  if (typeof value !== 'object' || value === null)
    throw new TypeError(`${where} must be an object of texts by language`)
  // Safe: a check for each of the names
  const checks = Object.fromEntries(
    Object.keys(english).map((name) => [name, is.maybe(is.nonEmpty)]),
  ) as Checks<PageTexts>
  for (const [language, texts] of Object.entries(value)) {
    if (!/^[a-z]{2,8}(?:-[a-z\d]{1,8})*$/i.test(language))
      throw new TypeError(`${where}: ${language} is no language tag`)
    // Safe: anything but an object is refused
    checkOptions<PageTexts>(`${where}[${JSON.stringify(language)}]`, texts as PageTexts, checks)
  }
}
