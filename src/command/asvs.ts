/**
 * OWASP ASVS 5.0.0, V6 to V10, read for this library: a line for each requirement, with its level, how the library stands to it, the
 * requirement in a few words, the parts that matter, and the spec that shows it. The guide "ASVS 5.0" is made of it.
 */
import { visible } from '../audit/Audit.js'

/** Whether a requirement holds by default, by an option, is the application's, does not hold, or does not concern the library. */
type Standing = 'default' | 'option' | 'yours' | 'not' | 'other'

interface AsvsRequirement {
  readonly id: string
  readonly level: 1 | 2 | 3
  readonly standing: Standing
  readonly text: string
  /** Names of exports and options in backticks. */
  readonly where: string
  /** The spec, below `spec`. */
  readonly spec: string
}

const requirementLines = `
6.1.1 | 1 | yours | how guesses are limited is documented | \`limiter\`, \`throttled\` |
6.1.2 | 2 | yours | words that passwords must not contain are documented | \`words\` of \`newPassword\` |
6.1.3 | 2 | default | all ways to sign in are documented | \`audit\`, the policy file | audit/policy.unit.spec.ts
6.2.1 | 1 | option | passwords have at least 8 characters, better 15 | \`newPassword\` | passwords/newPassword.unit.spec.ts
6.2.2 | 1 | yours | users can change their password | \`hash\`, \`logOutEverywhere\` |
6.2.3 | 1 | option | a change asks for the present password | \`proof\` of \`sessionAuth\`, \`countFailures\` | sign-in/proofs.http.spec.ts
6.2.4 | 1 | option | new passwords are none of the 3,000 commonest that are long enough | \`newPassword\` with \`min\` 8; at 15 characters, \`breached\` | passwords/newPassword.unit.spec.ts
6.2.5 | 1 | default | no rules about kinds of characters | \`newPassword\` | passwords/newPassword.unit.spec.ts
6.2.6 | 1 | default | password fields are masked | \`passwordSignIn\`, \`linkPage\` | sign-in/passwordSignIn.http.spec.ts
6.2.7 | 1 | default | pasting and password managers work | \`passwordSignIn\`, \`passwordReset\` | sign-in/pages.browser.spec.ts
6.2.8 | 1 | default | passwords are verified as they came, neither cut nor folded | \`verify\` | passwords/passwords.unit.spec.ts
6.2.9 | 2 | default | passwords of 64 characters are allowed | \`newPassword\`, \`hash\` | passwords/newPassword.unit.spec.ts
6.2.10 | 2 | default | passwords do not expire | \`passwordSignIn\` | sign-in/passwordSignIn.http.spec.ts
6.2.11 | 2 | option | the documented words are refused | \`words\` of \`newPassword\` | passwords/newPassword.unit.spec.ts
6.2.12 | 2 | option | passwords that leaked are refused | \`breached\` of \`newPassword\` | passwords/newPassword.unit.spec.ts
6.3.1 | 1 | default | guesses are limited | \`passwordSignIn\`, \`throttled\` | sign-in/passwordSignIn.http.spec.ts
6.3.2 | 1 | default | there are no default accounts | \`sessions\` | examples/create.http.slow.spec.ts
6.3.3 | 2 | option | a second factor is demanded; at level 3 one of hardware | \`factors\`, \`passkeys\` | sign-in/factors.http.spec.ts
6.3.4 | 2 | default | all ways to sign in are as strong | \`methods\` of \`proof\` | sign-in/proofs.http.spec.ts
6.3.5 | 3 | yours | users hear of suspicious attempts | \`signedIn\`, \`on\` |
6.3.6 | 3 | option | mail is no factor | leave \`emailSignIn\` out | sign-in/mail.http.spec.ts
6.3.7 | 3 | yours | users hear of changes of their factors | \`on\` |
6.3.8 | 3 | default | nothing shows which users exist | \`verify\`, \`emailSignIn\`, \`passwordReset\` | sign-in/silence.http.spec.ts
6.4.1 | 1 | option | first passwords and activation codes are random and short-lived | \`passwordReset\` | sign-in/mail.http.spec.ts
6.4.2 | 1 | default | there are no secret questions | \`passwordReset\` | sign-in/mail.http.spec.ts
6.4.3 | 2 | default | a reset goes around no second factor | \`passwordReset\` | sign-in/mail.http.spec.ts
6.4.4 | 2 | yours | who lost a factor is identified as at its enrolment | \`recoveryCodes\` |
6.4.5 | 3 | yours | reminders come before a factor expires | |
6.4.6 | 3 | option | administrators start a reset, and never know the password | \`passwordReset\` | sign-in/mail.http.spec.ts
6.5.1 | 2 | default | codes are good once | \`totp\`, \`recoveryCodes\`, \`emailSignIn\` | sign-in/factors.http.spec.ts
6.5.2 | 2 | default | recovery codes have 112 bits, or are hashed like passwords | \`recoveryCodes\` | sign-in/factors.http.spec.ts
6.5.3 | 2 | default | codes and seeds are random | \`totp\`, \`recoveryCodes\` | sign-in/factors.http.spec.ts
6.5.4 | 2 | default | codes have 20 bits | \`emailSignIn\`, \`recoveryCodes\` | sign-in/mail.http.spec.ts
6.5.5 | 2 | option | codes by mail live 10 minutes, those of an app 30 seconds | \`lifetime\`; \`window\` of \`totp\` | sign-in/factors.http.spec.ts
6.5.6 | 3 | option | each factor can be revoked | \`remove\` of \`passkeys\` | sign-in/passkeys.http.spec.ts
6.5.7 | 3 | other | biometrics are a second factor only | |
6.5.8 | 3 | default | the clock is the server's | \`totp\` | sign-in/factors.http.spec.ts
6.6.1 | 2 | default | codes by telephone are not the only way | there is none | sign-in/mail.http.spec.ts
6.6.2 | 2 | default | a code is bound to the request that it was made for | \`emailSignIn\` | sign-in/mail.http.spec.ts
6.6.3 | 2 | default | codes by mail cannot be guessed | \`emailSignIn\` | sign-in/mail.http.spec.ts
6.6.4 | 3 | other | push messages are limited | |
6.7.1 | 3 | other | certificates of devices cannot be changed | |
6.7.2 | 3 | default | challenges have 64 bits, and are unique | \`passkeys\` | sign-in/passkeys.http.spec.ts
6.8.1 | 2 | default | one provider cannot name the user of another | \`oidc\`: \`issuer\` and \`subject\` | sign-in/oidc.http.spec.ts
6.8.2 | 2 | default | signatures of assertions are verified | \`oidc\` | sign-in/oidc-wrong.http.spec.ts
6.8.3 | 2 | other | SAML assertions are used once | |
6.8.4 | 2 | option | strength and age of a provider's sign-in are checked | \`acrValues\`, \`maxAge\` of \`oidc\` | sign-in/oidc-wrong.http.spec.ts
7.1.1 | 2 | yours | lifetimes of sessions are documented | \`idle\`, \`absolute\` |
7.1.2 | 2 | yours | how many sessions a user may have is documented | \`list\` |
7.1.3 | 2 | yours | sessions across systems are documented | \`backChannelLogout\` |
7.2.1 | 1 | default | sessions are verified by the server | \`sessions\` | sessions/sessionIds.http.spec.ts
7.2.2 | 1 | default | session tokens are made anew, and are no fixed keys | \`sessions\` | sessions/sessionIds.http.spec.ts
7.2.3 | 1 | default | session tokens have 128 random bits | \`sessions\` | sessions/sessionIds.http.spec.ts
7.2.4 | 1 | default | a sign-in makes a new session token | \`logIn\`, \`addProof\` | sessions/fixation.http.spec.ts
7.3.1 | 2 | default | sessions end when they are not used | \`idle\` | sessions/maxAge.http.spec.ts
7.3.2 | 2 | default | sessions end at last | \`absolute\` | sessions/maxAge.http.spec.ts
7.4.1 | 1 | default | a session that ended cannot be resumed | \`logOut\` | sessions/copies.http.spec.ts
7.4.2 | 1 | default | the sessions of a disabled user end | \`loadUser\`, \`logOutEverywhere\` | sessions/gone.http.spec.ts
7.4.3 | 2 | option | other sessions can be ended after a change of a factor | \`logOutEverywhere\` | sign-in/mail.http.spec.ts
7.4.4 | 2 | yours | each page has a way to sign out | \`logOut\` |
7.4.5 | 2 | option | administrators can end sessions | \`logOutEverywhere\` | sessions/ends.http.spec.ts
7.5.1 | 2 | option | sensitive changes ask for a fresh proof | \`proof\` of \`sessionAuth\` | sign-in/proofs.http.spec.ts
7.5.2 | 2 | option | users see and end their sessions | \`listSessions\`, \`endSession\` | sessions/list.http.spec.ts
7.5.3 | 3 | option | sensitive operations ask for a fresh proof | \`proof\` of \`sessionAuth\` | sign-in/proofs.http.spec.ts
7.6.1 | 2 | option | sessions here and at a provider end as documented | \`maxAge\`, \`backChannelLogout\` | sign-in/oidc-out.http.spec.ts
7.6.2 | 2 | default | no session is made without the user | \`begin\`, \`finish\` | sign-in/oidc.http.spec.ts
8.1.1 | 1 | default | who may call what is documented | \`audit\`, the policy file | audit/policy.unit.spec.ts
8.1.2 | 2 | yours | who may read and write which field is documented | |
8.1.3 | 3 | yours | what of a request counts for decisions is documented | |
8.1.4 | 3 | yours | how risk is weighed is documented | |
8.2.1 | 1 | option | functions need a permission | \`authorize\`, \`requireScopes\`, \`seal\` | audit/seal.http.spec.ts
8.2.2 | 1 | option | objects need a permission | \`owned\` | audit/seal-objects.unit.spec.ts
8.2.3 | 2 | yours | fields need a permission | |
8.2.4 | 3 | yours | decisions look at time, place and device | |
8.3.1 | 1 | default | the server decides | \`withAuth\` | koa/levels/model.http.spec.ts
8.3.2 | 3 | option | a change of rights counts at once | \`revoked\`, \`loadUser\` | sessions/decided.http.spec.ts
8.3.3 | 3 | option | calls onward are made with the rights of the user | \`upstream\`, \`exchange\` | sign-in/exchange.http.spec.ts
8.4.1 | 2 | option | tenants cannot reach each other | \`owned\`, \`expectIsolated\` | testing/expectIsolated.http.spec.ts
8.4.2 | 3 | yours | administration has several layers | \`also\` |
9.1.1 | 1 | default | signatures of tokens are verified | \`httpJwt\` | jwt/attacks.http.spec.ts
9.1.2 | 1 | default | algorithms are on a list, without none | \`httpJwt\` | jwt/attacks.http.spec.ts
9.1.3 | 1 | default | keys come from the issuer that is configured | \`httpJwt\` | jwt/providers.http.spec.ts
9.2.1 | 1 | default | tokens are good in their time only | \`httpJwt\` | jwt/claims.law.spec.ts
9.2.2 | 2 | option | tokens are of the right type | \`profile\` of \`httpJwt\` | jwt/attacks.http.spec.ts
9.2.3 | 2 | default | tokens are for this service | \`audience\` of \`httpJwt\` | jwt/claims.law.spec.ts
9.2.4 | 2 | other | issuers restrict the audience | |
10.1.1 | 2 | default | tokens stay at the server | \`oidc\`, \`providerAnswer\` | sign-in/oidc.http.spec.ts
10.1.2 | 2 | default | an answer belongs to the browser that began | \`oidc\` | sign-in/oidc.http.spec.ts
10.2.1 | 2 | default | no other site can finish a sign-in | \`oidc\`, \`oauth2\` | sign-in/oidc.http.spec.ts
10.2.2 | 2 | default | providers cannot be mixed up | \`oidc\` | sign-in/oidc-wrong.http.spec.ts
10.2.3 | 3 | yours | only the scopes are asked for that are needed | \`scope\` |
10.3.1 | 2 | default | access tokens are for this service | \`httpJwt\`, \`httpIntrospection\` | jwt/claims.law.spec.ts
10.3.2 | 2 | option | the claims of a token decide | \`requireScopes\`, \`authorize\` | core/scopesSaid.http.spec.ts
10.3.3 | 2 | option | users are found by issuer and subject | \`httpJwt\` | jwt/httpJwt.unit.spec.ts
10.3.4 | 2 | option | strength and age of a sign-in are checked | \`requireAuthentication\` | jwt/requireAuthentication.http.spec.ts
10.3.5 | 3 | option | stolen tokens are of no use | \`dpop\` of \`httpJwt\` | jwt/dpop.http.spec.ts
10.5.1 | 2 | default | ID tokens are no replays | \`oidc\` | sign-in/oidc-wrong.http.spec.ts
10.5.2 | 2 | default | users are found by a claim that is never given to another | \`oidc\` | sign-in/oidc.http.spec.ts
10.5.3 | 2 | default | metadata are of the issuer that is configured | \`oidc\` | sign-in/oidc-wrong.http.spec.ts
10.5.4 | 2 | default | ID tokens are for this client | \`oidc\` | sign-in/oidc-wrong.http.spec.ts
10.5.5 | 2 | option | logout tokens are of the right type | \`backChannelLogout\` | sign-in/oidc-out.http.spec.ts
`
// V10.4, V10.6 and V10.7 are about authorization servers: their levels, in their order
const serverLines = Object.entries({ '10.4': '1111122222233333', '10.6': '22', '10.7': '222' }).flatMap(
  ([section, levels]) =>
    [...levels].map((level, at) => `${section}.${at + 1} | ${level} | other | a rule for authorization servers | |`),
)

export const requirements: ReadonlyArray<AsvsRequirement> = [...requirementLines.trim().split('\n'), ...serverLines]
  .map((line) => {
    const [id = '', level, standing, text = '', where = '', spec = ''] = line.split('|').map((part) => part.trim())
    // Safe: the lines above
    return { id, level: Number(level) as 1 | 2 | 3, standing: standing as Standing, text, where, spec }
  })
  .toSorted((one, other) => one.id.localeCompare(other.id, 'en', { numeric: true }))

const howTo: Readonly<Record<Standing, string>> = {
  default: 'show that the application uses',
  option: 'show that the application has',
  yours: 'the application says how',
  not: 'the library does not do it',
  other: 'only for an application that does this itself',
}

export interface AsvsVerdict {
  readonly verdict: 'holds' | 'fails' | 'not known'
  readonly why: string
}

export type Verdicts = Readonly<Record<string, AsvsVerdict>>

interface Row extends AsvsVerdict {
  readonly id: string
  readonly level: number
  readonly text: string
}

/** The rows up to a level, for an application. `holds` is said only of what was read off it. */
export const rowsFor = (seen: Verdicts, level: number): ReadonlyArray<Row> =>
  requirements
    .filter((one) => one.level <= level)
    .map(({ id, level, text, standing, where }) => {
      const how = [howTo[standing], where].filter((part) => part !== '').join(': ')
      return { id, level, text, ...(seen[id] ?? { verdict: 'not known', why: how }) }
    })

export const asvsTable = (rows: ReadonlyArray<Row>): string => {
  const cell = (text: string): string => visible(text).replaceAll('|', '\\|')
  return [
    '| ASVS 5.0.0 | Level | Requirement | Verdict |',
    '| -- | -- | -- | -- |',
    ...rows.map(
      ({ id, level, text, verdict, why }) => `| ${id} | ${level} | ${cell(text)} | ${verdict}: ${cell(why)} |`,
    ),
  ].join('\n')
}
