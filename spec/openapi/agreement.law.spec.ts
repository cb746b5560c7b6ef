/** The document and the guards are two views of one value. Over HTTP, they agree. */
import { Agent, createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import fc from 'fast-check'
import Koa from 'koa'
import type { SecurityScheme } from 'koa-with-auth'
import { openApi } from 'koa-with-auth/openapi'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { calls, describedApp, type DescribedApp } from '../support/sites/describedApps.js'
import { hasFewCases, samples } from '../support/runs/samples.js'
import { placeOf, type Kind } from '../support/models/sentKinds.js'
import { exchange } from '../support/servers/server.js'

// One server and one connection for all applications
const now: { app: RequestListener } = { app: () => {} }
const server = createServer((req, res) => now.app(req, res))
const agent = new Agent({ keepAlive: true, maxSockets: 1 })
beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)))
afterAll(() => {
  agent.destroy()
  server.close()
})

interface Sent {
  readonly kind: Kind
  readonly strong: boolean
}

// Sends credentials where the schemes of the document say
const ask = async (path: string, credentials: ReadonlyArray<Sent>) => {
  const headers: Record<string, string> = {}
  const query: string[] = []
  const cookies: string[] = []
  for (const { kind, strong } of credentials) {
    const value = strong ? kind.strong : kind.weak
    const [place, ...name] = kind.at.split(' ')
    if (place === 'query') query.push(`${encodeURIComponent(name.join(' '))}=${encodeURIComponent(value)}`)
    else if (place === 'cookie') cookies.push(`${name.join(' ')}=${value}`)
    else headers[place === 'header' ? name.join(' ') : 'Authorization'] = value
  }
  if (cookies.length > 0) headers['Cookie'] = cookies.join('; ')
  const { port } = server.address() as AddressInfo
  const before = calls.count
  const target = query.length === 0 ? path : `${path}?${query.join('&')}`
  const { status, headers: received, text } = await exchange({ agent, port, path: target, headers })
  return { status, challenge: received['www-authenticate'], body: text, ran: calls.count - before }
}

/** The alternatives of the document: the credentials that are sent together, and the scopes that each needs. */
type Alternative = ReadonlyMap<Kind, ReadonlyArray<string>>

const subsetsOf = <A>(all: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> =>
  all.reduce<ReadonlyArray<ReadonlyArray<A>>>((some, one) => [...some, ...some.map((each) => [...each, one])], [[]])

const covers = (sent: ReadonlyArray<Sent>, alternative: Alternative): boolean =>
  [...alternative].every(([kind, scopes]) =>
    sent.some((one) => one.kind === kind && (one.strong || scopes.length === 0)),
  )

const strong = (kinds: Iterable<Kind>): ReadonlyArray<Sent> => [...kinds].map((kind) => ({ kind, strong: true }))

const isMinimal = <A>(set: ReadonlySet<A>, among: ReadonlyArray<ReadonlySet<A>>): boolean =>
  !among.some((other) => other.size < set.size && [...other].every((one) => set.has(one)))
const named = (set: ReadonlySet<Kind>): string => [...set].map(({ at }) => at).sort().join(' + ') // prettier-ignore
const minimal = (sets: ReadonlyArray<ReadonlySet<Kind>>): string[] =>
  [...new Set(sets.filter((set) => isMinimal(set, sets)).map(named))].sort()

const APPLICATIONS = samples(250)
const seen = {
  applications: 0,
  operations: 0,
  alternatives: 0,
  requests: 0,
  together: 0,
  anonymous: 0,
  public: 0,
  weak: 0,
}

const agree = async ({ router, kinds, size }: DescribedApp): Promise<void> => {
  const callback = new Koa().use(router.routes()).callback()
  now.app = (req, res) => void callback(req, res)
  const { paths, components = {} } = JSON.parse(
    JSON.stringify(openApi(router, { title: 'Random', version: '1' })),
  ) as ReturnType<typeof openApi>
  const schemes = (components.securitySchemes ?? {}) as Readonly<Record<string, SecurityScheme>>
  const kindOf = (name: string): Kind => {
    const kind = kinds.find(({ at }) => at === placeOf(schemes[name]!))
    if (kind === undefined) throw new Error(`nothing is sent as ${name} says`)
    return kind
  }
  expect(Object.keys(paths)).toHaveLength(size)
  seen.applications++
  for (const [path, item] of Object.entries(paths)) {
    const { security = [{}], responses = {} } = item?.get ?? {}
    seen.operations++
    const expectAnswer = async (sent: ReadonlyArray<Sent>, accepted: boolean | undefined): Promise<boolean> => {
      const answer = await ask(path, sent)
      seen.requests++
      const isIn = answer.status === 200
      if (accepted !== undefined)
        expect({ path, security, sent, isIn }).toEqual({ path, security, sent, isIn: accepted })
      expect([answer.ran, answer.body === 'in']).toEqual([isIn ? 1 : 0, isIn])
      if (isIn) return true
      expect(Object.keys(responses)).toContain(String(answer.status))
      expect(JSON.parse(answer.body)).toMatchObject({ status: answer.status })
      if (answer.status === 401) expect(answer.challenge).not.toBeUndefined()
      else expect(answer.status).toBe(403)
      return false
    }

    if (security.length === 0) {
      seen.public++
      await expectAnswer([], true)
      await expectAnswer(strong(kinds), true)
      continue
    }
    const alternatives: ReadonlyArray<Alternative> = security.map(
      (one) => new Map(Object.entries(one).map(([name, scopes]) => [kindOf(name), scopes])),
    )
    const isListed = (sent: ReadonlyArray<Sent>) => alternatives.some((alternative) => covers(sent, alternative))
    const taken = [...new Set(alternatives.flatMap((alternative) => [...alternative.keys()]))]

    // Every accepted request is listed, so a request without credentials, and a group without one member, are refused
    const accepted: Array<ReadonlySet<Kind>> = []
    for (const subset of subsetsOf(taken)) {
      const isIn = await expectAnswer(strong(subset), isListed(strong(subset)) ? undefined : false)
      if (isIn) accepted.push(new Set(subset))
    }
    expect(minimal(accepted)).toEqual(minimal(alternatives.map((alternative) => new Set(alternative.keys()))))

    for (const alternative of alternatives) {
      seen.alternatives++
      if (alternative.size > 1) seen.together++
      if (alternative.size === 0) seen.anonymous++
      await expectAnswer(strong(alternative.keys()), true)
      for (const [kind, scopes] of alternative) {
        if (scopes.length === 0) continue
        const sent = [...alternative.keys()].map((one) => ({ kind: one, strong: one !== kind }))
        if (isListed(sent)) continue
        seen.weak++
        await expectAnswer(sent, false)
      }
    }
  }
}

describe('the document and the guards agree', () => {
  it('an operation lists an alternative exactly if its credentials alone pass, and a request without credentials is refused', async () => {
    await fc.assert(fc.asyncProperty(describedApp, agree), { numRuns: APPLICATIONS })
    // every kind of operation was tried
    if (hasFewCases) return
    expect(seen.applications).toBeGreaterThanOrEqual(APPLICATIONS * 0.8)
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(APPLICATIONS / 5)
  })
})
