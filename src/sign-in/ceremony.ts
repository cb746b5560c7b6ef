/**
 * A sign-in of several requests: begin, a sealed handle goes out, finish uses it once.
 *
 * Nothing is stored at the beginning. The state travels in the handle, which is encrypted under a key of
 * the application, the kind and the browser. So any number of tabs can begin, and a visitor costs the store nothing.
 *
 * The order in `finish` is the security: open, end, subject, accept, use once, check, complete. A step that fails runs no
 * later one. This file knows no Koa; `beginning.ts` and `signIn.ts` are the glue.
 */
import * as E from 'fp-ts/lib/Either.js'
import * as AuthErrors from '../core/AuthError.js'
import type { UnfinishedReason } from '../core/UnfinishedReason.js'
import { recordDigest, report, type CeremonyEvent } from '../core/events.js'
import type { Proof } from '../core/Proof.js'
import { counting } from '../guesses/Guess.js'
import { memoryLimiter } from '../guesses/memoryLimiter.js'
import { derivedFrom } from '../crypto/appKeys.js'
import { constantTimeEqual, decrypt, derive, digest, encrypt, mac, randomId } from '../crypto/secrets.js'
import type { OneTimeIds } from '../core/OneTimeIds.js'
import type { Result } from '../core/Result.js'
import { caught } from './countFailures.js'
import type { Lifetimes } from './Lifetimes.js'
import { intentsOf, isForSubject, localPath, type AnyKind, type SomeBeginner, type SomeKind } from './Kind.js'
import type { Beginner, Ceremony, Incoming, Intent, Kind, Sent, Signer } from './Kind.js'

/** The content of a handle. */
interface HandleContent extends Pick<Ceremony, 'intent' | 'subject' | 'returnTo' | 'display' | 'until'> {
  readonly salt: string
  readonly before: ReadonlyArray<Proof>
  /** The revocation stamp of the user when the first proof was given. */
  readonly stamp?: string | undefined
  readonly kept: unknown
  /** How long the session lasts, as the first factor said. */
  readonly lasting?: Lifetimes | undefined
}

export interface Starting
  extends
    Pick<HandleContent, 'intent' | 'subject' | 'stamp' | 'lasting'>,
    Partial<Pick<HandleContent, 'before'>>,
    Pick<Ceremony, 'conditional'> {
  readonly returnTo?: unknown
  readonly display?: Ceremony['display'] | undefined
  readonly ask?: unknown
}

interface Beginning extends Starting {
  readonly incoming: Incoming
  readonly browser: string
}

/** A ceremony whose answer was right. */
export interface Finished extends Omit<HandleContent, 'salt' | 'kept'> {
  readonly proof: Proof
  /** A digest that identifies the ceremony. */
  readonly id: string
}

interface Completed {
  /** The identifier of the user who was signed in, or got the proof. */
  readonly user: string | undefined
  /** Whether the application accepted it; otherwise it has written a response of its own. */
  readonly isAccepted: boolean
}

interface FinishRequest {
  readonly incoming: Incoming
  readonly browser: string | undefined
  readonly subject: string | undefined
  /** Whether the sessions of its user were not ended since its first factor, if it has one. */
  readonly isGoingOn: (half: Pick<HandleContent, 'subject' | 'stamp' | 'before'>) => Promise<boolean>
  readonly isAwaited: (intent: Intent) => boolean
  /** Whether the session of this browser was made or changed by a ceremony. */
  readonly isFinishedHere: (id: string) => Promise<boolean>
  readonly complete: (finished: Finished) => Promise<Result<Completed>>
}

/** The end of a ceremony: it was completed, or it had been before. */
interface Ended extends Pick<HandleContent, 'returnTo' | 'display'> {
  readonly completed?: Completed
}

interface CeremonyHost {
  readonly keys: () => unknown
  readonly name: string
  readonly origin: string
  readonly ids: OneTimeIds
  /** The clock, in milliseconds since 1970. */
  readonly now?: () => number
}

/** Stands for the secret of the browser where a token will carry the sign-in: such a handle opens in no browser's ceremony. */
export const BY_TOKEN = 'token'

// --- handles

const MAX_HANDLE = 8192

// A handle has values without names, because a link in a mail carries it
const members = ['salt', 'until', 'intent', 'subject', 'returnTo', 'display', 'before', 'stamp', 'lasting'] as const

const sealHandle = (key: Buffer, { kept, ...content }: HandleContent): string =>
  encrypt(key, JSON.stringify([kept, ...members.map((name) => content[name])])).toString('base64url')

const unsealHandle = (key: Buffer, raw: Buffer): HandleContent | undefined => {
  const text = decrypt(key, raw)?.toString()
  if (text === undefined) return undefined
  // Safe, both: only `sealHandle` has the key. JSON has no undefined
  const [kept, ...values] = JSON.parse(text) as ReadonlyArray<unknown>
  return { ...Object.fromEntries(members.map((name, at) => [name, values[at] ?? undefined])), kept } as HandleContent
}

// A handle has one spelling: base64url without padding, blanks, or other last bits
const rawOf = (handle: unknown): Buffer | undefined => {
  if (typeof handle !== 'string' || handle.length > MAX_HANDLE) return undefined
  const raw = Buffer.from(handle, 'base64url')
  return raw.toString('base64url') === handle ? raw : undefined
}

// --- ceremonies

// Every client gets handles, and a wrong answer keeps an id in the store, and may ask a provider. So of the answers of kinds that check an
// answer once, only so many may be wrong
const WRONG_OF_BROWSER = 50
const WRONG_OF_ADDRESS = 1000
const QUARTER = 15 * 60

// The store keeps an id longer than its handle can be opened, also if the clocks of two machines differ, or a clock is set back, by less
// than the lifetime of the handle
const MARGIN = 60_000

type BoundKind = Pick<AnyKind, 'name' | 'bound'>

type FinishResult = Result<Ended>

const unfinishedFor = (reason: UnfinishedReason): Result<never> => E.left(AuthErrors.unfinished(reason))

export const ceremonies = (host: CeremonyHost) => {
  const self: State = {
    ...host,
    now: host.now ?? (() => Date.now()),
    roots: () => derivedFrom(host.keys(), 'koa-with-auth/sign-in'),
    running: new Map(),
    limited: counting(
      {
        accountAndAddress: memoryLimiter(WRONG_OF_BROWSER, QUARTER),
        address: memoryLimiter(WRONG_OF_ADDRESS, QUARTER),
      },
      'finish',
    ),
  }
  return {
    // Safe, both: a kind gets the content and the answer that it made
    begin: <Ask, Kept>(kind: Beginner<Ask, Kept>, beginning: Beginning) =>
      beginIn(self, kind as unknown as SomeBeginner, beginning),
    finish: <Kept, Answer>(kind: Kind<never, Kept, Answer>, finishing: FinishRequest) =>
      finishIn(self, kind as unknown as SomeKind, finishing),
    /** Reports a failure that was found before the ceremony was looked at. */
    refused: (kind: string, step: 'begin' | 'finish', failure: AuthErrors.AuthError) =>
      reportRefused(self, kind, step, failure),
    /** The content of a handle that any browser may open. */
    keptIn: (kind: BoundKind, handle: string): unknown =>
      kind.bound === false ? openWith(self, kind.name, '', handle)?.content.kept : undefined,
    /** Encrypts a string for one browser, so that only the application reads it. */
    conceal: (browser: string, text: string): string =>
      encrypt(pageKey(self, firstOf(self.roots()), browser), text).toString('base64url'),
    reveal: (browser: string, hidden: string): string | undefined => {
      const raw = rawOf(hidden)
      const found = self.roots().map((root) => raw && decrypt(pageKey(self, root, browser), raw)?.toString())
      return found.find((text) => text !== undefined)
    },
  }
}

interface State extends CeremonyHost {
  readonly now: () => number
  /** The keys of all that is signed or sealed, the first first. */
  readonly roots: () => ReadonlyArray<Buffer>
  /** Answers that are being checked, so that the same one at the same time leads to the same place. */
  readonly running: Map<string, Promise<FinishResult>>
  readonly limited: ReturnType<typeof counting>
}

const handleBrowser = ({ bound }: Pick<BoundKind, 'bound'>, sent: string): string => (bound === false ? '' : sent)

const pageKey = ({ name }: State, root: Buffer, browser: string): Buffer => derive(root, 'page', name, browser)

const signerOf = ({ roots, name }: State, kind: string): Signer => {
  const signature = (root: Buffer, text: string) => mac(derive(root, 'signer', name, kind), text)
  return {
    sign: (text) => signature(firstOf(roots()), text),
    verify: (text, sent) => roots().some((root) => constantTimeEqual(signature(root, text), sent)),
  }
}

interface Opened {
  readonly content: HandleContent
  readonly root: Buffer
  readonly kind: string
  readonly browser: string
}

const openWith = (self: State, kind: string, browser: string, handle: unknown): Opened | undefined => {
  const raw = rawOf(handle)
  if (raw === undefined) return undefined
  for (const root of self.roots()) {
    const content = unsealHandle(handleKey(self, root, kind, browser), raw)
    if (content !== undefined) return { content, root, kind, browser }
  }
  return undefined
}

const handleKey = ({ name }: State, root: Buffer, kind: string, browser: string): Buffer =>
  derive(root, 'handle', name, kind, browser)

const ceremonyOf = (self: State, { content, root, kind, browser }: Opened): Ceremony => {
  const { name, origin, ids } = self
  const { intent, subject, returnTo, display, until, salt } = content
  const secret = (purpose: string) => derive(root, 'secret', name, kind, browser, salt, purpose).toString('base64url')
  return { intent, subject, origin, returnTo, display, until, secret, ids }
}

// --- begin

const beginIn = async (
  self: State,
  kind: SomeBeginner,
  { incoming, browser: given, ask, returnTo, display = 'page', before = [], ...about }: Beginning,
): Promise<Result<Sent>> => {
  const salt = randomId(16)
  const sent = await caught(async () => {
    const root = firstOf(self.roots())
    const browser = handleBrowser(kind, given)
    const until = self.now() + kind.lifetime
    const content = { ...about, salt, until, returnTo: localPath(returnTo), display, before, kept: null }
    const ceremony = ceremonyOf(self, { content, root, kind: kind.name, browser })
    const beginning = { ...ceremony, conditional: about.conditional }
    const begun = await kind.begin(incoming, beginning, ask, signerOf(self, kind.name))
    if (E.isLeft(begun)) return begun
    const { kept, send } = begun.right
    return E.right(await send(sealHandle(handleKey(self, root, kind.name, browser), { ...content, kept })))
  })
  if (E.isLeft(sent)) reportRefused(self, kind.name, 'begin', sent.left, about)
  else reportGood(self, 'begun', kind.name, { ...about, id: idOf(kind.name, salt) })
  return sent
}

// --- finish

const finishIn = async (self: State, kind: SomeKind, finishing: FinishRequest): Promise<FinishResult> => {
  let about: KnownCeremony | undefined
  const ended = await caught(async (): Promise<FinishResult> => {
    const answered = kind.read(finishing.incoming, signerOf(self, kind.name))
    if (answered === undefined) return unfinishedFor('unknown')
    const { handle, answer, elsewhere = 'unknown' } = answered
    if (kind.bound !== false && finishing.browser === undefined) return unfinishedFor(elsewhere)
    const browser = handleBrowser(kind, finishing.browser ?? '')
    const opened = openWith(self, kind.name, browser, handle)
    if (opened === undefined) return unfinishedFor(elsewhere)
    const { intent, subject, salt } = opened.content
    about = { id: idOf(kind.name, salt), intent, subject }
    return finishOpened(self, { ...opened, of: kind, finishing, answer, id: about.id })
  })
  if (E.isLeft(ended)) reportRefused(self, kind.name, 'finish', ended.left, about)
  else if (about !== undefined && ended.right.completed !== undefined) {
    const { user = about.subject, isAccepted } = ended.right.completed
    if (isAccepted) reportGood(self, 'finished', kind.name, { ...about, subject: user })
    else reportRefused(self, kind.name, 'finish', AuthErrors.unfinished('noAccount'), about)
  }
  return ended
}

interface Answering extends Opened {
  readonly of: SomeKind
  readonly finishing: FinishRequest
  readonly answer: unknown
  readonly id: string
}

const finishOpened = async (self: State, given: Answering): Promise<FinishResult> => {
  const { of: kind, finishing, content, browser, id } = given
  const { intent, until } = content
  const leadsAgain = kind.leadsAgain === true && kind.bound !== false && (await finishing.isFinishedHere(id))
  if (until <= self.now() && !leadsAgain) return unfinishedFor('late')
  if (!intentsOf(kind).includes(intent) || !finishing.isAwaited(intent)) return unfinishedFor('unknown')
  const { subject, incoming } = finishing
  if (isForSubject(intent) && (subject === undefined || content.subject !== subject))
    return unfinishedFor('anotherUser')
  if (leadsAgain) return E.right(endedAt(content))
  if (!(await finishing.isGoingOn(content))) return unfinishedFor('unknown') // it uses no code up
  const accepted = (await kind.accepts?.(incoming.body, content.kept, given.answer)) ?? true
  if (accepted !== true) return unfinishedFor(accepted || 'weak')
  // another password by the same link is another answer
  const answering = kind.bound === false ? { ...given, id: digest(JSON.stringify([id, incoming.body])) } : given
  const check = () => checkOnce(self, answering, id)
  if ((kind.tries ?? 1) > 1) return check()
  const run = () =>
    self.limited(browser === BY_TOKEN ? undefined : browser || undefined, incoming.address, check, isWrongAnswer)
  return kind.leadsAgain === true ? checkShared(self, answering, run) : run()
}

const endedAt = ({ returnTo, display }: HandleContent): Ended => ({ returnTo, display })

// whether there was a free try
const useTry = async ({ ids }: State, id: string, tries: number, lifetime: number): Promise<boolean> => {
  for (let at = 0; at < tries; at++) if (await ids.use(tryOf(id, at), lifetime)) return true
  return false
}

// whether this answer is the first right one. No later answer has a try, so its code is neither checked nor used up
const endTries = async ({ ids }: State, id: string, tries: number, lifetime: number): Promise<boolean> => {
  if (!(await ids.use(`${id}.done`, lifetime))) return false
  await Promise.all(Array.from({ length: tries }, (_, at) => ids.use(tryOf(id, at), lifetime)))
  return true
}

// `tried` identifies the ceremony, whose tries are shared by all its answers
const checkOnce = async (self: State, answering: Answering, tried: string): Promise<FinishResult> => {
  const { of: kind, finishing, content, answer, id } = answering
  const { tries = 1 } = kind
  const { kept, salt: _salt, ...said } = content
  const remembered = Math.max(said.until - self.now(), 2 * kind.lifetime) + MARGIN
  if (!(await useTry(self, tried, tries, remembered))) {
    if (tries > 1) await self.running.get(id)
    return kind.leadsAgain === true && (await finishing.isFinishedHere(id)) ? E.right(endedAt(content)) : answeredBefore
  }
  const checked = await kind.check(kept, answer, ceremonyOf(self, answering))
  if (E.isLeft(checked)) return checked
  const at = self.now()
  const proof = { ...checked.right, at: Math.min(checked.right.at ?? at, at) }
  const complete = async (): Promise<FinishResult> => {
    if (tries > 1 && !(await endTries(self, tried, tries, remembered))) return answeredBefore
    const completed = await finishing.complete({ ...said, proof, id })
    return E.isLeft(completed) ? completed : E.right({ ...endedAt(content), completed: completed.right })
  }
  return tries > 1 && kind.leadsAgain === true ? checkShared(self, answering, complete) : complete()
}

// Of the same answers at the same time, one is checked, and the others lead where it leads
const checkShared = async (
  { running }: State,
  { id, content, finishing }: Answering,
  run: () => Promise<FinishResult>,
): Promise<FinishResult> => {
  const same = running.get(id)
  if (same !== undefined)
    return E.isRight(await same) && (await finishing.isFinishedHere(id)) ? E.right(endedAt(content)) : answeredBefore
  const result = caught(run)
  running.set(id, result)
  try {
    return await result
  } finally {
    running.delete(id)
  }
}

// An outage is none, and neither is one that came before
const isWrongAnswer = (ended: Result<Ended>): boolean =>
  E.isLeft(ended) && ended.left !== usedBefore && !AuthErrors.stops(ended.left)

const tryOf = (id: string, at: number): string => `${id}.${at}`

// A digest that identifies a ceremony
const idOf = (kind: string, salt: string): string => digest(`${kind}\n${salt}`).slice(0, 22)

const firstOf = (roots: ReadonlyArray<Buffer>): Buffer => {
  const [first] = roots
  if (first === undefined) throw new TypeError('app.keys holds no key')
  return first
}

// The failure of an answer that came again: `unknown` for the client, and `used` in the record. Compared by identity
const usedBefore: AuthErrors.AuthError = AuthErrors.unfinished('unknown')

const answeredBefore: Result<never> = E.left(usedBefore)

// --- records (`on('ceremony')` of `koa-with-auth/events`)

interface KnownCeremony {
  readonly id: string
  readonly intent: Intent
  readonly subject: string | undefined
}

const digestOfUser = ({ name }: State, subject: string | undefined) =>
  subject !== undefined && { user: recordDigest('user', name, subject) }

const reportGood = (
  self: State,
  event: 'begun' | 'finished',
  kind: string,
  { id, intent, subject }: KnownCeremony,
): void =>
  report('ceremony')(() => {
    const about = { intent, ceremony: recordDigest('ceremony', id), ...digestOfUser(self, subject) }
    return { event, application: self.name, kind, ...about }
  })

const reportRefused = (
  self: State,
  kind: string,
  step: 'begin' | 'finish',
  failure: AuthErrors.AuthError,
  { id, intent, subject }: Partial<KnownCeremony> = {},
): void =>
  report('ceremony')((): CeremonyEvent => {
    const reason = failure === usedBefore ? 'used' : failure.reason
    return {
      ...{ event: 'refused', application: self.name, kind, step, failure: failure._tag },
      ...(reason !== undefined && { reason }),
      // of a beginning it has none, because its handle was never sent
      ...(id !== undefined && { ceremony: recordDigest('ceremony', id) }),
      ...(intent !== undefined && { intent, ...digestOfUser(self, subject) }),
    }
  })
