// The pages of signing in: every way in, the forms for codes, and what the links of mails open.
import type { Page } from 'koa-with-auth/sessions'
import { demonstration } from './accounts.js'
import { alert, escaped, field, hidden, layout, notice, post } from './pages.js'

export interface WaysIn {
  readonly failed: string
  readonly done: string
  readonly returnTo: string
  readonly hasSecond: boolean
  readonly hasPlain: boolean
  /** The folder that gets the mails; empty if they are in the log. */
  readonly mails: string
}

/** Who can sign in, and how: a person who tries the shop knows nothing of it. */
export const whoCan = (mails: string): string => `<aside aria-label="Who can sign in">
<h2>Who can sign in</h2>
<dl>
${demonstration.map((name) => `<div><dt>${name}</dt><dd>password <code>${name}-secret</code></dd></div>`).join('\n')}
<div><dt>Mail</dt><dd>to <code>${demonstration[0]}@shop.example</code> is ${mails === '' ? 'in the terminal' : 'in MAIL_DIR'}</dd></div>
<div><dt>Provider</dt><dd>takes any name, and makes an account</dd></div>
<div><dt>Passkey</dt><dd>add one after the first sign-in</dd></div>
</dl></aside>`

/** Every way to sign in. */
export const signInPage = ({ failed, done, returnTo, hasSecond, hasPlain, mails }: WaysIn): string => {
  const to = hidden('returnTo', returnTo)
  const query = `?returnTo=${encodeURIComponent(returnTo)}`
  const link = (path: string, name: string) =>
    `<a class="button second" href="${path}${query}">Continue with ${name}</a>`
  return layout(
    'Sign in',
    `${alert(failed)}${notice(done)}
<section>${post(
      '/sign-in/password',
      `${to}${field('Name', 'name="username" autocomplete="username webauthn" autocapitalize="none" spellcheck="false" autofocus')}
${field('Password', 'name="password" type="password" autocomplete="current-password"')}
<button>Sign in</button>`,
    )}
<button id="passkey" type="button" class="second" data-return-to="${escaped(returnTo)}" hidden>Sign in with a passkey</button>
<noscript><p>Signing in with a passkey needs scripts.</p></noscript>
<p id="passkey-failed" role="status"></p></section>
<section class="or">${link('/sign-in/provider', 'your provider')}
${hasSecond ? link('/sign-in/b', 'the other provider') : ''}
${hasPlain ? link('/sign-in/plain', 'the plain provider') : ''}</section>
<section class="or">${post(
      '/sign-in/mail',
      `${to}${field('E-mail address', 'name="address" type="email" autocomplete="email"')}
<button class="second">Send me a code</button>`,
    )}</section>
<details><summary>Forgot the password?</summary>${post(
      '/reset',
      `${field('E-mail address', 'name="address" type="email" autocomplete="email"')}<button class="second">Set a new password</button>`,
    )}</details>
${whoCan(mails)}`,
    { script: 'passkeys' },
  )
}

interface FormTexts {
  readonly title: string
  readonly text?: string
  readonly label?: string
  readonly button: string
}

const texts: Readonly<Record<string, FormTexts>> = {
  code: { title: 'One more step', label: 'Code of your authenticator app, or a recovery code', button: 'Sign in' },
  mail: {
    title: 'Check your mail',
    text: 'If the address has an account, a mail is on its way. Type its code here, or open its link in this browser.',
    label: 'Code of 8 digits',
    button: 'Sign in',
  },
  'mail link': {
    title: 'Sign in to the shop',
    text: 'This signs you in if this is the browser where you asked for the mail.',
    button: 'Sign in',
  },
  'reset link': {
    title: 'A new password',
    text: 'At least 15 characters, such as four words. It signs you out everywhere. Then sign in with it.',
    label: 'New password',
    button: 'Save',
  },
  'verify link': { title: 'Your address', text: 'It is yours if this mail came to you.', button: 'Verify it' },
}

const again: ReadonlySet<string> = new Set(['wrong', 'short', 'long', 'common', 'context', 'breached'])

/** Whether a failure has the same form again. */
export const isAskedAgain = (failed: string): boolean => again.has(failed)

/** A form of the library's data: for a code, and what the link of a mail opens. */
export const ceremonyPage = ({ kind, handle = '', fields, action }: Page, failed = ''): string => {
  const name = fields.some((one) => one.name === 'key') ? `${kind} link` : kind
  const { title, text = '', label = '', button } = texts[name] ?? { title: 'Sign in', button: 'Continue' }
  const inputs = [hidden('handle', handle)]
  for (const { name: sent, type, autocomplete, inputmode = '', value = '', readonly } of fields) {
    const mode = inputmode === '' ? '' : ` inputmode="${inputmode}"`
    const input = `name="${sent}" type="${type}" autocomplete="${autocomplete}" autocapitalize="none" spellcheck="false"${mode}`
    if (type === 'hidden') inputs.push(hidden(sent, value))
    // the account that a password manager saves the new password for
    else if (readonly) inputs.push(field('E-mail address', `${input} value="${escaped(value)}" readonly`))
    else inputs.push(field(label, `${input} autofocus`))
  }
  return layout(
    title,
    `${alert(failed)}${text === '' ? '' : `<p>${text}</p>`}${post(action, `${inputs.join('')}<button>${button}</button>`)}
<p><a href="/sign-in">Begin again</a></p>`,
  )
}
