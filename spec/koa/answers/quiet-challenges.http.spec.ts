/**
 * Requests of scripts make no browser prompt: which combinations of header fields make `Basic` quiet, and that nothing
 * else changes.
 */
import { Challenge, authenticator, httpBasicAuth, httpBearer, withAuth, type AuthenticatorLike } from 'koa-with-auth'
import { option as O } from 'fp-ts'
import type Koa from 'koa'
import { describe, expect, test } from 'vitest'
import { operation } from '../../support/models/behavior.js'
import { parseChallenge } from '../../support/models/challengeParser.js'

const basic = httpBasicAuth({ realm: 'back office', authenticate: () => false })
const BASIC = 'Basic realm="back office", charset="UTF-8"'

type Fields = Readonly<Record<string, string>>
const from = (mode: string, site = 'same-origin', more: Fields = {}): Fields => ({
  ...(mode !== '' && { 'Sec-Fetch-Mode': mode }),
  ...(site !== '' && { 'Sec-Fetch-Site': site }),
  ...more,
})
const xhr = { 'X-Requested-With': 'XMLHttpRequest' }

const table: ReadonlyArray<readonly [what: string, fields: Fields, quiet: boolean]> = [
  ['no field at all (curl, old browsers)', {}, false],
  ['a page that is opened by its address', from('navigate', 'none'), false],
  ['a link of the same site', from('navigate'), false],
  ['a link of another site', from('navigate', 'cross-site'), false],
  ['a frame', from('nested-navigate'), false],
  ['a navigation that also sends X-Requested-With', from('navigate', 'same-origin', xhr), false],
  ['fetch, same origin', from('cors'), true],
  ['fetch, same site', from('cors', 'same-site'), true],
  ['fetch, another site', from('cors', 'cross-site'), true],
  ['fetch with mode same-origin', from('same-origin'), true],
  ['fetch with mode no-cors, an image', from('no-cors', 'cross-site'), true],
  ['a socket', from('websocket'), true],
  ['fetch and XMLHttpRequest', from('cors', 'same-origin', xhr), true],
  ['Node’s fetch, which sends only the mode', from('cors', ''), false],
  ['only a site', from('', 'same-origin'), false],
  ['an old XMLHttpRequest', xhr, true],
  ['X-Requested-With in another letter case', { 'x-requested-with': 'xmlHTTPrequest' }, true],
  ['Node’s fetch with X-Requested-With', from('cors', '', xhr), true],
  ['a site with X-Requested-With', from('', 'same-origin', xhr), true],
  ['the value of another library', { 'X-Requested-With': 'com.example.app' }, false],
  ['two modes', from('navigate, navigate'), true],
  ['an unknown mode', from('NAVIGATE'), true],
  ['an empty mode', { 'Sec-Fetch-Mode': '', 'Sec-Fetch-Site': 'none' }, false],
]

describe('the quiet challenge of Basic', () => {
  test.each(table)('%s', async (_what, headers, quiet) => {
    const { ask } = await operation(withAuth(basic))
    for (const method of ['GET', 'HEAD', 'POST']) {
      const answer = await ask('/x', { method, headers: { ...headers } })
      expect(answer).toMatchObject({ status: 401, seen: [], challenges: [quiet ? `x${BASIC}` : BASIC] })
      // A quiet challenge is a valid challenge, of a scheme that no browser knows
      const { parameters } = parseChallenge(answer.challenges[0]!)
      expect(Object.fromEntries(parameters)).toEqual({ realm: 'back office', charset: 'UTF-8' })
    }
  })
})

describe('quiet challenges in a list', () => {
  const plain = { ambient: false, extract: () => O.none, authenticate: (_request: unknown, sent: string) => sent }
  const offering = (scheme: string) => authenticator({ ...plain, challenge: Challenge.make(scheme) })
  const asked = async (auth: unknown, above?: Parameters<typeof operation>[1]) => {
    const { ask } = await operation(withAuth(auth as AuthenticatorLike), above)
    return (await ask('/x', { headers: from('cors') })).challenges
  }

  test('concern only the schemes for which browsers prompt, in any letter case, and keep their places', async () => {
    const schemes = ['Digest', 'Bearers', 'NEGOTIATE', 'NTLM', 'basic', 'Basics', 'BasicX', 'xBasic']
    const offered = await asked([httpBearer({ authenticate: () => false }), basic, ...schemes.map(offering)])
    const others = ['xDigest', 'Bearers', 'xNEGOTIATE', 'xNTLM', 'xbasic', 'Basics', 'BasicX', 'xBasic']
    expect(offered).toEqual(['Bearer realm="api"', `x${BASIC}`, ...others.map((name) => `${name} realm="api"`)])
  })

  test('are sent once if two of them become equal', async () => {
    expect(await asked([offering('Basic'), offering('xBasic')])).toEqual(['xBasic realm="api"'])
  })

  test('are also sent with a 401 that a handler throws', async () => {
    const passing = httpBasicAuth({ realm: 'back office', authenticate: () => ({ user: 'anna' }) })
    const late: Koa.Middleware = (ctx, next) => next().then(() => ctx.throw(401))
    const { ask } = await operation(withAuth(passing), (app) => void app.use(late))
    const Authorization = `Basic ${Buffer.from('a:b').toString('base64')}`
    const loud = await ask('/x', { headers: { Authorization } })
    const quiet = await ask('/x', { headers: { Authorization, ...from('cors') } })
    expect([loud.challenges, quiet.challenges]).toEqual([[BASIC], [`x${BASIC}`]])
  })
})
