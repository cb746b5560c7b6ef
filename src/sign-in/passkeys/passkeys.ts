/**
 * Passkeys as kinds of ceremonies: one registers, one signs in, one steps up. None takes the answer of another.
 *
 * The challenge is the handle of the ceremony. So a begin stores nothing, a challenge is good once, and any number of pages can wait
 * for a passkey. `RelyingParty.ts` checks answers. This file asks the store, and compares the users.
 */
import * as E from 'fp-ts/lib/Either.js'
import type { Middleware } from 'koa'
import { report } from '../../core/events.js'
import { absent, unfinished } from '../../core/AuthError.js'
import type { Result } from '../../core/Result.js'
import type { ProofGiven } from '../../core/Proof.js'
import { ownField, unawaited } from '../../core/data.js'
import { declareFactory } from '../../core/options.js'
import { requestSessionOf } from '../../sessions/RequestSession.js'
import { contextOf, SignInRefused, type WithRequest } from '../../sessions/SignIn.js'
import { randomId } from '../../crypto/secrets.js'
import type { Intent, Kind } from '../Kind.js'
import { checkPasskeysOptions, type NamedUser, type PasskeysOptions } from './options.js'
import type { PasskeyRecord, PasskeyUse } from './PasskeyRecord.js'
import { coseAlgorithms, assertionIn, checkAssertion, checkRegistration, registrationIn } from './RelyingParty.js'
import type { Assertion, Registration } from './RelyingParty.js'

/** A use of a passkey, or its registration. */
export interface PasskeyProof extends ProofGiven {
  readonly method: 'passkey'
  /** The identifier of the user, as the session has it. */
  readonly subject: string
  /** The id of the credential, in base64url. */
  readonly credential: string
  /** Whether the authenticator verified its user in this ceremony: then it is two factors. */
  readonly userVerified: boolean
  /** Whether the passkey is synced to other devices. */
  readonly backedUp: boolean
}

/** Uses a passkey. */
export type PasskeyKind = Kind<never, null, Assertion, PasskeyProof>

/** Registers a passkey for the user who is signed in. */
export interface PasskeyRegistration extends Kind<never, Registering, Registration, PasskeyProof> {
  /** The passkey is stored when its answer is right. A hook can write another response. */
  readonly needsHook: false
}

interface Registering {
  readonly userHandle: string
  readonly conditional: boolean
}

/**
 * The news of a page for the password manager of its user, by the names of the methods of `PublicKeyCredential` (WebAuthn Level 3 §5.1.10):
 * which passkeys the user still has, and the name of the user. Empty for a user without passkeys.
 */
export interface PasskeySignals {
  readonly signalAllAcceptedCredentials?: {
    readonly rpId: string
    readonly userId: string
    readonly allAcceptedCredentialIds: ReadonlyArray<string>
  }
  readonly signalCurrentUserDetails?: {
    readonly rpId: string
    readonly userId: string
    readonly name: string
    readonly displayName: string
  }
}

/** The ceremonies of one RP id. The value itself signs in, or steps up after `begin(passkey, { intent: 'stepUp' })`. */
export interface Passkeys extends PasskeyKind {
  /** Registers. Ask for a fresh proof where it begins. */
  readonly register: PasskeyRegistration
  /** Proves the user who is signed in; no other route finishes its ceremonies. */
  readonly stepUp: PasskeyKind
  /**
   * The signals for the user who is signed in, as JSON for a page: after a passkey was removed or a name was changed, it calls
   * `PublicKeyCredential[name]?.(data)` for each. `nameOf` gets `ctx.request.auth`. Rejects with `SignInRefused` for an anonymous
   * caller (401), and with an `UnavailableError` in an outage of the store.
   */
  readonly signals: (ctx: WithRequest) => Promise<PasskeySignals>
  /** The value itself, for `const { register, signIn } = passkeys({ ... })`. */
  readonly signIn: Passkeys
  /** Resolves to the passkeys of a user for this RP id, the oldest first. Rejects with an `UnavailableError`, a 503, in an outage. */
  readonly list: (user: string) => Promise<ReadonlyArray<PasskeyRecord>>
  /**
   * Removes a passkey by the id of its credential if it is the user's, and resolves to whether it was. It signs in no more. After an outage
   * call it again.
   */
  readonly remove: (id: string, user: string) => Promise<boolean>
  /** Middleware that lists the related origins at `/.well-known/webauthn`. Use it before the routers. */
  readonly related: Middleware
}

const refusedPasskey: Result<never> = E.left(unfinished('unknown'))

type ResolvedOptions = ReturnType<typeof checkPasskeysOptions<never>>

const proofOf = (
  subject: string,
  credential: string,
  { userVerified, backedUp }: PasskeyUse & { readonly userVerified: boolean },
): PasskeyProof => ({ method: 'passkey', subject, credential, userVerified, backedUp })

// How long after the password a passkey may be made without asking, in milliseconds
const AFTER_PASSWORD = 300_000

const registering = (setting: ResolvedOptions): PasskeyRegistration => {
  const { party, lifetime, inStore } = setting
  return {
    name: `passkey.register:${party.id}`,
    lifetime,
    intents: ['link'],
    needsHook: false,
    conditional: { methods: ['password'], maxAge: AFTER_PASSWORD },
    begin: async ({ principal }, { subject, conditional = false }) => {
      if (subject === undefined) return E.left(unfinished('anotherUser'))
      const name = nameFrom(setting, principal)
      const registered = await inStore.listOf(subject)
      // WebAuthn §14.6.1: random, so that it says nothing about the user
      const userHandle = registered[0]?.userHandle ?? randomId()
      return E.right({
        kept: { userHandle, conditional },
        send: (challenge) => ({
          body: creationOptions(setting, challenge, { id: userHandle, name }, registered, conditional),
        }),
      })
    },
    read: ({ body }) => answered(registrationIn(body)),
    check: async ({ userHandle, conditional }, answer, { subject }) => {
      const made = await checkRegistration(party, answer.client.challenge, answer, conditional)
      if (made === undefined || subject === undefined) return refusedPasskey
      const { userVerified, ...kept } = made
      const { id, transports } = answer
      const entry = { id, user: subject, userHandle, rpId: party.id, transports, createdAt: Date.now() }
      if (!(await inStore.add({ ...entry, ...kept }))) return refusedPasskey
      report('passkey')(() => ({ event: 'registered', id, rpId: party.id }))
      return E.right(proofOf(subject, id, { ...kept, userVerified }))
    },
  }
}

const signalsFor = async (setting: ResolvedOptions, given: WithRequest): Promise<PasskeySignals> => {
  const ctx = contextOf('signals(ctx)', given)
  const { id: rpId } = setting.party
  const subject = requestSessionOf(ctx).present(ctx)?.id
  if (subject === undefined) throw new SignInRefused(absent)
  const own = await setting.inStore.listOf(subject)
  const [first] = own
  if (first === undefined) return {}
  const about = { rpId, userId: first.userHandle }
  const name = nameFrom(setting, ownField(ctx.request, 'auth'))
  return {
    signalAllAcceptedCredentials: { ...about, allAcceptedCredentialIds: own.map(({ id }) => id) },
    signalCurrentUserDetails: { ...about, name, displayName: name },
  }
}

// A name that is no string would be one of the browser's: `[object Object]`
const nameFrom = ({ nameOf }: ResolvedOptions, principal: unknown): string => {
  // Safe: the principal of the operation, and the type of `nameOf` names it
  const name = unawaited(nameOf(principal as never))
  if (typeof name === 'string' && name !== '') return name
  throw new TypeError('passkeys({ nameOf }) must return a string that is not empty, such as the e-mail address')
}

const using = (setting: ResolvedOptions, kind: string, ...intents: ReadonlyArray<Intent>): PasskeyKind => {
  const { party, lifetime, inStore } = setting
  return {
    name: `${kind}:${party.id}`,
    lifetime,
    intents,
    begin: () => E.right({ kept: null, send: (challenge) => ({ body: requestOptions(setting, challenge) }) }),
    read: ({ body }) => answered(assertionIn(body)),
    check: async (_kept, answer, { subject }) => {
      const { id } = answer
      const found = await inStore.find(id)
      const record = found?.record
      const used = await checkAssertion(party, answer.client.challenge, answer, record)
      if (found === undefined || record === undefined || used === undefined) return refusedPasskey
      // of a step-up, and of a sign-in after a first factor
      if (subject !== undefined && subject !== record.user) return E.left(unfinished('anotherUser'))
      const { userVerified, ...use } = used
      // of two answers with one counter at the same time, the second finds the counter of the first
      if (await inStore.use(found, use, Date.now())) return E.right(proofOf(record.user, id, { ...use, userVerified }))
      const now = await inStore.find(id)
      return now === undefined ? refusedPasskey : copiedPasskey(now.record, use.counter)
    },
  }
}

const copiedPasskey = ({ id, rpId, counter: stored }: PasskeyRecord, received: number): Result<never> => {
  report('passkey')(() => ({ event: 'copied', id, rpId, stored, received }))
  return refusedPasskey
}

const answered = <A extends Assertion | Registration>(answer: A | undefined) =>
  answer && { handle: answer.client.challenge, answer }

/**
 * Passkeys of one RP id, as kinds for `begin` and `finish`. Throws a TypeError for options that cannot work.
 *
 * The proof has the identifier of the user in `subject`. When the hook of `register` is called, the passkey is stored; the hook
 * returns something truthy, and can be left out. Every wrong answer is 400 `unknown`, with the same body for all, and nothing is
 * stored. A store that fails is 503.
 *
 * @example
 * import { begin, finish } from 'koa-with-auth/sign-in'
 * import { passkeys } from 'koa-with-auth/sign-in/passkeys'
 * import { memoryStore } from 'koa-with-auth/stores'
 *
 * const users = new Map([['anna', { username: 'anna' }]])
 * const passkey = passkeys({
 *   rp: { id: 'shop.example', name: 'Shop' },
 *   origins: ['https://shop.example'],
 *   store: memoryStore(),
 *   nameOf: (user: { username: string }) => user.username,
 * })
 * const options = begin(passkey) // POST /sign-in/passkey/options, behind withAuth(null)
 * const signIn = finish(passkey, (_ctx, { proof }) => users.get(proof.subject)) // POST /sign-in/passkey
 */
export const passkeys = <U = NamedUser>(options: PasskeysOptions<U>): Passkeys => {
  const setting = checkPasskeysOptions(options)
  const { inStore } = setting
  const made = {
    ...using(setting, 'passkey', 'signIn', 'stepUp'),
    stepUp: using(setting, 'passkey.stepUp', 'stepUp'),
    register: registering(setting),
    signals: (ctx: WithRequest) => signalsFor(setting, ctx),
    related: relatedOrigins(setting.party.id, setting.related),
    list: (user: string) => listPasskeys(setting, user),
    remove: async (id: string, user: string) => typeof id === 'string' && inStore.remove(id, user),
  }
  // Safe: the missing member is added. It is the same value, because two kinds of one name would be refused
  const passkey = made as unknown as Passkeys
  return Object.assign(passkey, { signIn: passkey })
}

declareFactory('passkeys', passkeys)

const listPasskeys = async ({ inStore }: ResolvedOptions, user: string): Promise<ReadonlyArray<PasskeyRecord>> => {
  if (typeof user === 'string') return inStore.listOf(user)
  throw new TypeError('passkeys(...).list(user): user must be a string, the identifier of a user')
}

// A browser on `https://shop.de` that is asked for a passkey of `shop.example` looks for its own origin in this document of `shop.example`
// (WebAuthn §5.11). If an application has several ids, the host of the request decides; any other host gets the first document
const relatedOrigins =
  (rpId: string, origins: ReadonlyArray<string>): Middleware =>
  async (ctx, next) => {
    const isAsked = ctx.path === '/.well-known/webauthn' && (ctx.method === 'GET' || ctx.method === 'HEAD')
    if (!isAsked || ctx.hostname !== rpId) await next()
    // the answer of other middleware counts
    if (!isAsked || ctx.status !== 404 || ctx.body !== undefined) return
    ctx.type = 'application/json'
    ctx.body = JSON.stringify({ origins })
  }

// --- options for browsers (WebAuthn §5.1.8, §5.1.9)

// `PublicKeyCredentialCreationOptionsJSON`
const creationOptions = (
  { party, lifetime }: ResolvedOptions,
  challenge: string,
  user: { readonly id: string; readonly name: string },
  registered: ReadonlyArray<PasskeyRecord>,
  isConditional: boolean,
) => ({
  challenge,
  rp: { id: party.id, name: party.name },
  user: { ...user, displayName: user.name },
  pubKeyCredParams: coseAlgorithms.map((alg) => ({ type: 'public-key', alg })),
  timeout: lifetime,
  excludeCredentials: registered.map(({ id, transports }) => ({ id, type: 'public-key', transports })),
  authenticatorSelection: {
    residentKey: 'required',
    requireResidentKey: true,
    userVerification: isConditional ? 'preferred' : party.userVerification,
  },
  attestation: 'none',
})

// `PublicKeyCredentialRequestOptionsJSON`, without `allowCredentials`, which would say which names have accounts
const requestOptions = ({ party, lifetime }: ResolvedOptions, challenge: string) => ({
  challenge,
  rpId: party.id,
  timeout: lifetime,
  userVerification: party.userVerification,
})
