/** No browser prompt where a script asked: which combinations of header fields quieten `Basic`, and that nothing else changes. */
import { Challenge, authenticator, httpBasicAuth, httpBearer, withAuth, type AuthenticatorLike } from 'koa-with-auth'
import { option as O } from 'fp-ts'
import { describe, expect, test } from 'vitest'
import { operation } from '../support/behavior.js'
import { parseChallenge } from '../support/challengeParser.js'

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
  ['a page that is opened', from('navigate', 'none'), false],
  ['a link of the same site', from('navigate'), false],
  ['a link of another site', from('navigate', 'cross-site'), false],
  ['a frame', from('nested-navigate'), false],
  ['a navigation, whatever library says', from('navigate', 'same-origin', xhr), false],
  ['fetch, same origin', from('cors'), true],
  ['fetch, same site', from('cors', 'same-site'), true],
  ['fetch, another site', from('cors', 'cross-site'), true],
  ['fetch with mode same-origin', from('same-origin'), true],
  ['fetch with mode no-cors, an image', from('no-cors', 'cross-site'), true],
  ['a socket', from('websocket'), true],
  ['fetch and XMLHttpRequest', from('cors', 'same-origin', xhr), true],
  ['Node’s fetch, which sends the mode alone', from('cors', ''), false],
  ['a site alone', from('', 'same-origin'), false],
  ['an old XMLHttpRequest', xhr, true],
  ['in other letters', { 'x-requested-with': 'xmlHTTPrequest' }, true],
  ['Node’s fetch with that field', from('cors', '', xhr), true],
  ['a site alone with that field', from('', 'same-origin', xhr), true],
  ['another library', { 'X-Requested-With': 'com.example.app' }, false],
  ['two modes', from('navigate, navigate'), true],
  ['a mode that is none', from('NAVIGATE'), true],
  ['an empty mode', { 'Sec-Fetch-Mode': '', 'Sec-Fetch-Site': 'none' }, false],
]

describe('Basic where no caller must be prompted', () => {
  test.each(table)('%s', async (_what, headers, quiet) => {
    const { ask } = await operation(withAuth(basic))
    for (const method of ['GET', 'HEAD', 'POST']) {
      const answer = await ask('/x', { method, headers: { ...headers } })
      expect(answer).toMatchObject({ status: 401, seen: [], challenges: [quiet ? `x${BASIC}` : BASIC] })
      // a quiet challenge is one all the same, of a scheme that no browser knows
      expect(parseChallenge(answer.challenges[0]!).parameters).toEqual([
        ['realm', 'back office'],
        ['charset', 'UTF-8'],
      ])
    }
  })

  test('Node’s own fetch keeps Basic', async () => {
    const { url } = await operation(withAuth(basic))
    const { status, headers } = await fetch(`${url}/x`)
    expect([status, headers.get('www-authenticate')]).toEqual([401, BASIC])
  })
})

describe('among others', () => {
  const offering = (scheme: string) =>
    authenticator({
      challenge: Challenge.make(scheme),
      ambient: false,
      extract: () => O.none,
      authenticate: (_request, sent: string) => sent,
    })
  const asked = async (auth: unknown, above?: Parameters<typeof operation>[1]) => {
    const { ask } = await operation(withAuth(auth as AuthenticatorLike), above)
    return (await ask('/x', { headers: from('cors') })).challenges
  }

  test('only the schemes for which browsers prompt are quietened, in any letters, in their places', async () => {
    const schemes = ['Digest', 'Bearers', 'NEGOTIATE', 'NTLM', 'basic', 'Basics', 'BasicX', 'xBasic']
    expect(await asked([httpBearer({ authenticate: () => false }), basic, ...schemes.map(offering)])).toEqual([
      'Bearer realm="api"',
      `x${BASIC}`,
      'xDigest realm="api"',
      'Bearers realm="api"',
      'xNEGOTIATE realm="api"',
      'xNTLM realm="api"',
      'xbasic realm="api"',
      'Basics realm="api"',
      'BasicX realm="api"',
      'xBasic realm="api"',
    ])
  })

  test('two that become one are one line', async () => {
    expect(await asked([offering('Basic'), offering('xBasic')])).toEqual(['xBasic realm="api"'])
  })

  test('a 401 that a handler throws is quiet, too', async () => {
    const passing = httpBasicAuth({ realm: 'back office', authenticate: () => ({ user: 'anna' }) })
    const { ask } = await operation(withAuth(passing), (app) => {
      app.use(async (ctx, next) => {
        await next()
        ctx.throw(401)
      })
    })
    const Authorization = `Basic ${Buffer.from('a:b').toString('base64')}`
    const loud = await ask('/x', { headers: { Authorization } })
    const quiet = await ask('/x', { headers: { Authorization, ...from('cors') } })
    expect([loud.challenges, quiet.challenges]).toEqual([[BASIC], [`x${BASIC}`]])
  })

  test('what a cache could keep is not stored, so one answer never stands for the other', async () => {
    const { ask } = await operation(withAuth(basic))
    for (const headers of [{}, from('cors')]) {
      expect((await ask('/x', { headers })).headers['cache-control']).toBe('no-store')
    }
  })
})
