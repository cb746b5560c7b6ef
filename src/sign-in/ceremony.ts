/**
 * A sign-in of several requests: begin, a sealed handle goes out, finish uses it once.
 *
 * Nothing is stored at the beginning. What must be remembered travels in the handle, which is encrypted under a key of
 * the application, the kind and the browser. So any number of tabs can begin, and a visitor costs the store nothing.
 *
 * The order in `finish` is the security: open, end, subject, accept, use once, check, complete. A step that fails runs no
 * later one. This file knows no Koa; `beginning.ts` and `signIn.ts` are the glue.
 */
import * as E from 'fp-ts/lib/Either.js'
import * as AuthErrors from '../core/AuthError.js'
import type { AuthError } from '../core/AuthError.js'
import type { UnfinishedReason } from '../core/UnfinishedReason.js'
import { ceremonyDigest, report, userDigest, type CeremonyEvent } from '../core/events.js'
import type { Proof, ProofGiven } from '../core/Proof.js'
import { counting } from '../guesses/Guess.js'
import { memoryLimiter } from '../guesses/memoryLimiter.js'
import { derivedFrom } from '../crypto/appKeys.js'
import { constantTimeEqual, decrypt, derive, digest, encrypt, mac, randomId } from '../crypto/secrets.js'
import type { OneTimeIds } from '../core/OneTimeIds.js'
import { caught } from './countFailures.js'
import type { Lifetimes } from './Lifetimes.js'
import {
  intentsOf,
  isForSubject,
  localPath,
  type Beginner,
  type Ceremony,
  type Display,
  type Finished,
  type Incoming,
  type Intent,
  type Kind,
  type Sent,
  type Signer,
} from './Kind.js'

/** What a ceremony begins with. */
export interface Starting<Ask> {
  readonly intent: Intent
  readonly subject: string | undefined
  readonly returnTo?: unknown
  /** Default `page`. */
  readonly display?: Display | undefined
  readonly ask?: Ask | undefined
  readonly before?: ReadonlyArray<Proof>
  readonly stamp?: string | undefined
  readonly lasting?: Lifetimes | undefined
}

interface Beginning<Ask> extends Starting<Ask> {
  readonly incoming: Incoming
  /** The secret of the browser. */
  readonly browser: string
}

/** What the application decided. */
interface Completed {
  /** The identifier of the user who was signed in, or who got the proof. */
  readonly user: string | undefined
  /** Whether the application accepted it; otherwise it has written a response of its own. */
  readonly isAccepted: boolean
}

interface Finishing<P extends ProofGiven> {
  readonly incoming: Incoming
  readonly browser: string | undefined
  readonly subject: string | undefined
  /** Whether the sessions of its user were not ended since its first factor, if it has one. */
  readonly isGoingOn: (half: Pick<Content, 'subject' | 'stamp'>) => Promise<boolean>
  /** Whether the application takes an answer for an intent here. */
  readonly isAwaited: (intent: Intent) => boolean
  /** Whether the session of this browser was made or changed by a ceremony. */
  readonly isFinishedHere: (id: string) => boolean
  /** Lets the application decide, and signs in. */
  readonly complete: (finished: Finished<P>) => Promise<E.Either<AuthError, Completed>>
}

/** What became of a ceremony: it was completed, or it had been before. */
interface Ended {
  readonly returnTo: string
  readonly display: Display
  readonly completed?: Completed
}

/** What ceremonies need of an application. */
interface CeremonyHost {
  /** The signing keys, as they are now. */
  readonly keys: () => unknown
  readonly name: string
  readonly origin: string
  readonly ids: OneTimeIds
  /** The clock, in milliseconds since 1970. */
  readonly now?: () => number
}

// --- handles

interface Content {
  readonly salt: string
  readonly until: number
  readonly intent: Intent
  readonly subject: string | undefined
  readonly returnTo: string
  readonly display: Display
  readonly before: ReadonlyArray<Proof>
  readonly stamp?: string | undefined
  readonly kept: unknown
  readonly lasting?: Lifetimes | undefined
}

const MAX_HANDLE = 8192

const seal = (key: Buffer, content: Content): string => {
  const { salt, until, intent, subject = null, returnTo, display, before, stamp = null, kept, lasting = null } = content
  const text = JSON.stringify([salt, until, intent, subject, returnTo, display, before, stamp, kept, lasting])
  return encrypt(key, text).toString('base64url')
}

const unseal = (key: Buffer, raw: Buffer): Content | undefined => {
  const text = decrypt(key, raw)?.toString()
  if (text === undefined) return undefined
  // Safe: only `seal` has the key
  const [salt, until, intent, subject, returnTo, display, before, stamp, kept, lasting] = JSON.parse(text) as [
    ...[string, number, Intent, string | null, string, Display, ReadonlyArray<Proof>, string | null, unknown],
    Lifetimes | null,
  ]
  const further = { subject: subject ?? undefined, stamp: stamp ?? undefined, lasting: lasting ?? undefined }
  return { salt, until, intent, returnTo, display, before, kept, ...further }
}

// A handle has one spelling: base64url without padding, blanks, or other last bits
const bytesOf = (handle: unknown): Buffer | undefined => {
  if (typeof handle !== 'string' || handle.length > MAX_HANDLE) return undefined
  const raw = Buffer.from(handle, 'base64url')
  return raw.toString('base64url') === handle ? raw : undefined
}

// --- ceremonies

// Anybody gets handles, and a wrong answer keeps an id in the store, and may ask a provider. So of the answers of kinds that check an
// answer once, only so many may be wrong
const WRONG_OF_BROWSER = 50
const WRONG_OF_ADDRESS = 1000
const QUARTER = 15 * 60

// An id is remembered longer than its handle can be opened, also if the clocks of two machines differ a little
const MARGIN = 60_000

/** Begins and finishes the ceremonies of an application. */
export type Ceremonies = ReturnType<typeof ceremonies>

const unfinished = (reason: UnfinishedReason): E.Either<AuthError, never> => E.left(AuthErrors.unfinished(reason))

export const ceremonies = ({ keys, name, origin, ids, now = () => Date.now() }: CeremonyHost) => {
  const roots = () => derivedFrom(keys(), 'koa-with-auth/sign-in')
  const reports = ceremonyReports(name)
  // answers that are being checked, so that the same one at the same time leads to the same place
  const running = new Map<string, Promise<E.Either<AuthError, Ended>>>()
  const browserOf = (kind: { readonly bound?: boolean | undefined }, sent: string) => (kind.bound === false ? '' : sent)
  const signerOf = (kind: string): Signer => {
    const signature = (root: Buffer, text: string) => mac(derive(root, 'signer', name, kind), text)
    return {
      sign: (text) => signature(firstOf(roots()), text),
      verify: (text, sent) => roots().some((root) => constantTimeEqual(signature(root, text), sent)),
    }
  }
  const open = (kind: string, browser: string, handle: unknown) => {
    const raw = bytesOf(handle)
    if (raw === undefined) return undefined
    for (const root of roots()) {
      const content = unseal(derive(root, 'handle', name, kind, browser), raw)
      if (content !== undefined) return { content, root }
    }
    return undefined
  }
  const ceremonyOf = (content: Omit<Content, 'kept'>, root: Buffer, kind: string, browser: string): Ceremony => {
    const { salt, intent, subject, returnTo, display, until } = content
    const secret = (purpose: string) => derive(root, 'secret', name, kind, browser, salt, purpose).toString('base64url')
    return { intent, subject, origin, returnTo, display, until, secret, ids }
  }
  const limited = counting({
    accountAndAddress: memoryLimiter(WRONG_OF_BROWSER, QUARTER),
    address: memoryLimiter(WRONG_OF_ADDRESS, QUARTER),
  })
  // whether there was a free try
  const useTry = async (id: string, tries: number, lifetime: number): Promise<boolean> => {
    for (let at = 0; at < tries; at++) if (await ids.use(tryOf(id, at), lifetime)) return true
    return false
  }
  // whether this answer is the first right one. No later answer has a try, so its code is neither checked nor used up
  const end = async (id: string, tries: number, lifetime: number): Promise<boolean> => {
    if (!(await ids.use(`${id}.done`, lifetime))) return false
    await Promise.all(Array.from({ length: tries }, (_, at) => ids.use(tryOf(id, at), lifetime)))
    return true
  }
  const attempt = async <Kept, Answer, P extends ProofGiven>(
    kind: Kind<never, Kept, Answer, P>,
    { content, root }: { readonly content: Content; readonly root: Buffer },
    { answer, browser, id }: { readonly answer: Answer; readonly browser: string; readonly id: string },
    { isFinishedHere, complete }: Finishing<P>,
  ): Promise<E.Either<AuthError, Ended>> => {
    const { tries = 1 } = kind
    const { until, intent, subject, returnTo, display, before, stamp, lasting } = content
    const remembered = until - now() + MARGIN
    if (!(await useTry(id, tries, remembered))) {
      return kind.leadsAgain === true && isFinishedHere(id) ? E.right({ returnTo, display }) : E.left(usedBefore)
    }
    // Safe: the same kind made it
    const checked = await kind.check(content.kept as Kept, answer, ceremonyOf(content, root, kind.name, browser))
    if (E.isLeft(checked)) return checked
    if (tries > 1 && !(await end(id, tries, remembered))) return E.left(usedBefore)
    const at = now()
    const proof = { ...checked.right, at: Math.min(checked.right.at ?? at, at) }
    const completed = await complete({ proof, before, intent, subject, stamp, returnTo, lasting, id })
    return E.isLeft(completed) ? completed : E.right({ returnTo, display, completed: completed.right })
  }
  const once = async (
    id: string,
    run: () => Promise<E.Either<AuthError, Ended>>,
    { returnTo, display }: Pick<Content, 'returnTo' | 'display'>,
  ) => {
    const same = running.get(id)
    if (same !== undefined) return E.isRight(await same) ? E.right({ returnTo, display }) : E.left(usedBefore)
    const result = caught(run)
    running.set(id, result)
    try {
      return await result
    } finally {
      running.delete(id)
    }
  }
  return {
    begin: async <Ask, Kept>(
      kind: Beginner<Ask, Kept>,
      { incoming, browser: given, ask, returnTo, display = 'page', before = [], ...about }: Beginning<Ask>,
    ): Promise<E.Either<AuthError, Sent>> => {
      const { intent, subject } = about
      const salt = randomId(16)
      const sent = await caught(async () => {
        const root = firstOf(roots())
        const browser = browserOf(kind, given)
        const content = { ...about, salt, until: now() + kind.lifetime, returnTo: localPath(returnTo), display, before }
        const ceremony = ceremonyOf(content, root, kind.name, browser)
        const begun = await kind.begin(incoming, ceremony, ask, signerOf(kind.name))
        if (E.isLeft(begun)) return begun
        const key = derive(root, 'handle', name, kind.name, browser)
        return E.right(await begun.right.send(seal(key, { ...content, kept: begun.right.kept })))
      })
      if (E.isLeft(sent)) reports.refused(kind.name, 'begin', sent.left, { intent, subject })
      else reports.begun(kind.name, { id: idOf(kind.name, salt), intent, subject })
      return sent
    },
    finish: async <Kept, Answer, P extends ProofGiven>(kind: Kind<never, Kept, Answer, P>, finishing: Finishing<P>) => {
      let about: { id: string; intent: Intent; subject: string | undefined } | undefined
      const ended = await caught(async (): Promise<E.Either<AuthError, Ended>> => {
        const answered = kind.read(finishing.incoming, signerOf(kind.name))
        if (answered === undefined) return unfinished('unknown')
        const { handle, answer, elsewhere = 'unknown' } = answered
        const { browser: sent, subject } = finishing
        if (kind.bound !== false && sent === undefined) return unfinished(elsewhere)
        const browser = browserOf(kind, sent ?? '')
        const opened = open(kind.name, browser, handle)
        if (opened === undefined) return unfinished(elsewhere)
        const { content } = opened
        const id = idOf(kind.name, content.salt)
        about = { id, intent: content.intent, subject: content.subject }
        if (content.until <= now()) return unfinished('late')
        if (!intentsOf(kind).includes(content.intent)) return unfinished('unknown')
        if (!finishing.isAwaited(content.intent)) return unfinished('unknown')
        if (isForSubject(content.intent) && (subject === undefined || content.subject !== subject)) {
          return unfinished('anotherUser')
        }
        if (!(await finishing.isGoingOn(content))) return unfinished('unknown') // it uses no code up
        // Safe: the same kind made it
        const isGood = (await kind.accepts?.(finishing.incoming.body, content.kept as Kept, answer)) ?? true
        if (!isGood) return unfinished('weak')
        const check = () => attempt(kind, opened, { answer, browser, id }, finishing)
        const { address } = finishing.incoming
        const run = () =>
          (kind.tries ?? 1) > 1 ? check() : limited(browser || undefined, address, check, isWrongAnswer)
        return kind.leadsAgain === true ? once(id, run, content) : run()
      })
      if (E.isLeft(ended)) reports.refused(kind.name, 'finish', ended.left, about)
      else if (about !== undefined && ended.right.completed !== undefined) {
        const { user = about.subject, isAccepted } = ended.right.completed
        if (isAccepted) reports.finished(kind.name, { ...about, subject: user })
        else reports.refused(kind.name, 'finish', AuthErrors.unfinished('noAccount'), about)
      }
      return ended
    },
    /** Reports a failure that was found before the ceremony was looked at. */
    refused: (kind: string, step: 'begin' | 'finish', failure: AuthError) => reports.refused(kind, step, failure),
  }
}

// An outage is none, and neither is one that came before
const isWrongAnswer = (ended: E.Either<AuthError, Ended>): boolean =>
  E.isLeft(ended) && ended.left !== usedBefore && !AuthErrors.stops(ended.left)

const tryOf = (id: string, at: number): string => `${id}.${at}`

// A digest that identifies a ceremony
const idOf = (kind: string, salt: string): string => digest(`${kind}\n${salt}`).slice(0, 22)

const firstOf = (roots: ReadonlyArray<Buffer>): Buffer => {
  const [first] = roots
  if (first === undefined) throw new TypeError('app.keys holds no key')
  return first
}

// --- reports

/** What is known of a ceremony. */
interface Known {
  /** Left out if its handle was never sent. */
  readonly id?: string
  readonly intent: Intent
  readonly subject: string | undefined
}

// The failure of an answer that came again: `unknown` for the client, and `used` in the record. Compared by identity
const usedBefore: AuthError = AuthErrors.unfinished('unknown')

// What becomes of the ceremonies of an application (`on('ceremony')` of `koa-with-auth/events`)
const ceremonyReports = (application: string) => {
  const aboutUser = ({ intent, subject }: Known) => ({
    intent,
    ...(subject !== undefined && { user: userDigest(application, subject) }),
  })
  const made =
    (event: 'begun' | 'finished') =>
    (kind: string, about: Known & { readonly id: string }): void =>
      report('ceremony')(() => ({
        event,
        application,
        kind,
        ceremony: ceremonyDigest(about.id),
        ...aboutUser(about),
      }))
  return {
    begun: made('begun'),
    finished: made('finished'),
    refused: (kind: string, step: 'begin' | 'finish', failure: AuthError, about?: Known): void =>
      report('ceremony')((): CeremonyEvent => {
        const reason = failure === usedBefore ? 'used' : failure.reason
        return {
          event: 'refused',
          application,
          kind,
          step,
          failure: failure._tag,
          ...(reason !== undefined && { reason }),
          ...(about?.id !== undefined && { ceremony: ceremonyDigest(about.id) }),
          ...(about !== undefined && aboutUser(about)),
        }
      }),
  }
}
