/**
 * Which requirements of ASVS an application holds, as far as that can be read off it: off its guards, and off the facts that the parts of
 * this package have settled. Nothing is known of the functions of the application.
 */
import { findingsOf } from '../audit/findings.js'
import type { Audited } from '../audit/application.js'
import { enforcedIn } from '../audit/router.js'
import { isSafe } from '../core/CrossOrigin.js'
import { factOf, type Fact } from '../core/data.js'
import { fieldOf, leaves, schemeOf, type Leaf } from '../core/Description.js'
import { additionOf } from '../koa/settings.js'
import type { AsvsVerdict, Verdicts } from './asvs.js'

type AsvsReading = Pick<Audited, 'audit' | 'reading'>

const verdictFails = (why: string): AsvsVerdict => ({ verdict: 'fails', why })
const verdictNotKnown = (why: string): AsvsVerdict => ({ verdict: 'not known', why })
const verdictHolds = (why: string): AsvsVerdict => ({ verdict: 'holds', why })

/** The verdicts by the number of the requirement. A requirement that is left out was not read. */
export const verdictsOf = (audited: AsvsReading): Verdicts => {
  const parts = readPartsOf(audited)
  return {
    ...accessVerdicts(audited),
    ...(parts.sessions === undefined ? {} : sessionVerdicts(parts, parts.sessions)),
    ...signInVerdicts(parts),
    ...providerVerdicts(parts),
    ...tokenVerdicts(parts),
  }
}

type ReadParts = ReturnType<typeof readPartsOf>

const readPartsOf = ({ audit, reading }: AsvsReading) => {
  const { routes, middleware } = reading
  const around = middleware.flatMap(({ path, functions }) => functions.map((it) => ({ at: `USE ${path}`, it })))
  const own = routes.map((route) => ({ at: route.name, it: route.functions.at(-1) }))
  const credentials = routes.flatMap((route) => {
    const description = enforcedIn(route)?.description
    return description === undefined ? [] : leaves(description).map((it) => ({ at: route.name, it }))
  })
  const isUnsettled = (it: (typeof own)[number]['it']): boolean => it === undefined || factOf(it) === undefined
  const isOpen = (index: number): boolean => {
    const operation = audit.operations[index]
    return operation !== undefined && operation.access !== 'guarded' && operation.docs !== 'page'
  }
  return {
    /** The facts that `sessions(app, ...)` has settled, if the application has it. */
    sessions: around.flatMap(({ it }) => factOf(it) ?? []).find(({ part }) => part === 'sessions'),
    credentials,
    /** The facts that functions of operations have settled. */
    facts: routes.flatMap(({ name, functions }) =>
      functions.flatMap((f) => factOf(f) ?? []).map((it) => ({ at: name, it })),
    ),
    /** Where anyone reaches a function of the application, which may do anything: `POST /login`. */
    open: [
      ...own.filter(({ it }, index) => isOpen(index) && isUnsettled(it)),
      ...around.filter(({ it }) => factOf(it) === undefined && additionOf(it) === undefined),
    ].map(({ at }) => at),
    /** Where a write reaches such a function, also behind a guard: it may sign in again, such as a member of support as a user. */
    writes: own
      .filter(({ it }, index) => !isSafe(audit.operations[index]?.method ?? '') && isUnsettled(it))
      .map(({ at }) => at),
    /** Why the guards cannot be read, if they cannot. */
    vague: vagueOf(audit),
    proven: credentials.filter(({ it }) => it.proof !== undefined).map(({ at }) => at),
  }
}

const vagueOf = ({ operations }: AsvsReading['audit']): AsvsVerdict | undefined => {
  const vague = operations.find(({ undescribed }) => undescribed.length > 0)
  return vague && verdictNotKnown(`${vague.operation}: a plain function or a RegExp cannot be described`)
}

const places = (all: ReadonlyArray<string>): string => {
  const each = [...new Set(all)]
  return each.length > 5 ? `${each.slice(0, 5).join(', ')} and ${each.length - 5} more` : each.join(', ')
}

// It holds unless a function of the application does the same
const unlessElsewhere = ({ open, vague }: ReadParts, why: string, what: string): AsvsVerdict =>
  vague ?? (open.length === 0 ? verdictHolds(why) : verdictNotKnown(`${why}; say that these ${what}: ${places(open)}`))

const each = (ids: ReadonlyArray<string>, verdict: AsvsVerdict): Verdicts =>
  Object.fromEntries(ids.map((id) => [id, verdict]))

const accessVerdicts = ({ audit }: AsvsReading): Verdicts => {
  const findings = findingsOf(audit)
  const ofRule = (...rules: ReadonlyArray<string>) => findings.find(({ rule }) => rules.includes(rule))
  const undecided = ofRule('undecided-operation', 'answered-first')
  const open = ofRule('undecided-operation', 'answered-first', 'open-operation', 'unguarded-middleware')
  const unread = ofRule('unchecked-parameter')
  const unclear = undecided ? verdictFails(undecided.message) : vagueOf(audit)
  const isPermitted = audit.operations.every(({ ways }) =>
    ways.every(
      ({ demands, takesAnything }) =>
        !takesAnything && demands.some(({ scopes, authorizations }) => scopes.length + authorizations.length > 0),
    ),
  )
  const permitted = isPermitted
    ? verdictHolds('each operation demands a scope or an authorization')
    : verdictNotKnown('say why each user may call the operations without a scope or an authorization')
  return {
    '8.1.1':
      unclear ??
      (unread ? verdictFails(unread.message) : verdictHolds('`koa-with-auth audit --write` writes the rules')),
    '8.2.1': unclear ?? (open ? verdictNotKnown(`say why anyone may call it: ${open.message}`) : permitted),
    '8.2.2': unread
      ? verdictFails(unread.message)
      : verdictNotKnown('say who may reach the objects that queries and bodies name'),
    '8.3.1':
      unclear ??
      (open
        ? verdictNotKnown(`say why no guard is needed: ${open.message}`)
        : verdictHolds('a guard decides before each handler')),
  }
}

const sessionVerdicts = (parts: ReadParts, { idle, absolute }: Fact): Verdicts => {
  const { credentials, vague, proven, facts } = parts
  const other = credentials.find(({ it }) => it.ambient && it.fact?.part !== 'session')
  const key = credentials.find(({ it }) => schemeOf(it)?.type === 'apiKey' && it.fact === undefined)
  const foreign = other && verdictNotKnown(`${other.at}: a credential that browsers send is no session of \`sessions\``)
  const own = vague ?? foreign ?? verdictHolds('`sessions` makes and reads them')
  const longer = facts.filter(({ it }) => it['lifetimes'] === true).map(({ at }) => at)
  const ending = (ms: Fact[string], when: string): AsvsVerdict => {
    const why = `\`sessions\` ends them ${when} ${durationInWords(Number(ms))}`
    if (vague ?? foreign) return verdictNotKnown(why)
    if (longer.length > 0) return verdictNotKnown(`${why}; say how long those of ${places(longer)} last`)
    if (Number(ms) > LONGEST_SESSION) return verdictNotKnown(`${why}; say why that is short enough`)
    return unlessElsewhere({ ...parts, open: [...parts.open, ...parts.writes] }, why, 'ask for no other')
  }
  const fresh =
    proven.length === 0
      ? 'no operation asks for a fresh proof; say why none needs it'
      : `a fresh proof is asked for by ${places(proven)}; say why the others need none`
  return {
    ...each(['7.2.1', '7.2.3', '7.2.4', '7.4.1'], own),
    '7.2.2': own.verdict === 'holds' && key ? verdictNotKnown(`${key.at}: say why a key is no session`) : own,
    '7.3.1': ending(idle, 'without a request after'),
    '7.3.2': ending(absolute, 'at last after'),
    ...each(['7.5.1', '7.5.3'], verdictNotKnown(fresh)),
  }
}

// NIST SP 800-63B-4 §2.1.3: at the lowest level, users sign in again after 30 days
const LONGEST_SESSION = 30 * 24 * 3_600_000

const durationInWords = (ms: number): string =>
  ms >= 48 * 3_600_000 ? `${ms / 86_400_000} days` : ms >= 3_600_000 ? `${ms / 3_600_000} h` : `${ms / 60_000} min`

const signInVerdicts = (parts: ReadParts): Verdicts => {
  const { credentials, facts } = parts
  const passwords = credentials.filter(({ it }) => {
    const scheme = schemeOf(it)
    return it.fields !== undefined || (scheme?.type === 'http' && scheme.scheme.toLowerCase() === 'basic')
  })
  const unlimited = passwords.find(({ it }) => it.throttled !== true)
  const limited = [...passwords, ...facts.filter(({ it }) => it.part === 'passwordSignIn')].map(({ at }) => at)
  const mails = facts.filter(({ it }) => it['of'] === 'emailSignIn')
  const long = [...mails, ...facts.filter(({ it }) => it['of'] === 'passwordReset')].find(
    ({ it }) => Number(it['lifetime']) > 10 * 60_000,
  )
  return {
    ...(unlimited && { '6.3.1': verdictFails(`${unlimited.at}: a password is asked for without \`throttled\``) }),
    ...(!unlimited &&
      limited.length > 0 && {
        '6.3.1': unlessElsewhere(parts, `guesses are limited at ${places(limited)}`, 'check no password'),
      }),
    ...(mails[0] && { '6.3.6': verdictFails(`${mails[0].at}: \`emailSignIn\``) }),
    ...(long && { '6.5.5': verdictFails(`${long.at}: it lives ${durationInWords(Number(long.it['lifetime']))}`) }),
  }
}

const providerVerdicts = (parts: ReadParts): Verdicts => {
  const at = (is: (fact: Fact) => boolean) => parts.facts.filter(({ it }) => is(it)).map((one) => one.at)
  const finished = at(({ part, of }) => part === 'finish' && of === 'oidc')
  const ended = at(({ part }) => part === 'backChannelLogout')
  const unlessOther = (all: ReadonlyArray<string>, name: string) =>
    unlessElsewhere(parts, `\`${name}\` at ${places(all)}`, 'speak to no provider')
  return {
    ...(finished.length > 0 &&
      each(
        ['6.8.1', '6.8.2', '10.1.2', '10.2.1', '10.2.2', '10.5.1', '10.5.3', '10.5.4'],
        unlessOther(finished, 'finish(oidc)'),
      )),
    ...(ended.length > 0 && { '10.5.5': unlessOther(ended, 'backChannelLogout') }),
  }
}

const tokenVerdicts = (parts: ReadParts): Verdicts => {
  const isToken = (leaf: Leaf): boolean => {
    const scheme = schemeOf(leaf)
    const isBasic = scheme?.type === 'http' && scheme.scheme.toLowerCase() === 'basic'
    return fieldOf(scheme) === 'Authorization' && !isBasic && leaf.fact?.part !== 'session'
  }
  const tokens = parts.credentials.filter(({ it }) => isToken(it) || it.fact?.part === 'httpJwt')
  if (tokens.length === 0) return {}
  const unread = tokens.find(({ it }) => it.fact?.part !== 'httpJwt')
  if (unread) return each(TOKENS, verdictNotKnown(`${unread.at}: tokens are read by a function of the application`))
  const verified = unlessElsewhere(parts, '`httpJwt` reads all tokens', 'read no token')
  const forAny = tokens.find(({ it }) => it.fact?.['isForHere'] !== true)
  const untyped = tokens.find(({ it }) => it.fact?.['isTyped'] !== true)
  return {
    ...each(TOKENS, verified),
    ...(forAny &&
      each(['9.2.3', '10.3.1'], verdictFails(`${forAny.at}: \`audience: false\` accepts tokens for any audience`))),
    ...(untyped && {
      '9.2.2': verdictNotKnown(`${untyped.at}: say of which type its tokens are, or write \`profile\``),
    }),
  }
}

const TOKENS = ['9.1.1', '9.1.2', '9.1.3', '9.2.1', '9.2.2', '9.2.3', '10.3.1']
