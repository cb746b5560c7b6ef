/** The steps of the guide "An API with tokens", as they are written there: each row of its tables is tried. */
import type Koa from 'koa'
import type { TestIssuer } from 'koa-with-auth/testing'
import { expect, it, onTestFinished } from 'vitest'
import { numberOfTables, servedProgram, tryTable } from '../support/papers/guidePrograms.js'

const guide = 'api-with-tokens'

interface Step {
  readonly app: Koa
  readonly provider: TestIssuer
  readonly users?: Map<string, { name: string; isActive: boolean }>
}

/** Serves a step of the guide, each time anew. */
const step = async (number: number) => {
  const made = await servedProgram<Step>(guide, number - 1)
  onTestFinished(() => made.provider.stop())
  /** The status, and the parameters of the challenge; `claims` is left out for no token. */
  const ask = async (request: string, claims?: Readonly<Record<string, unknown>>) => {
    const [method = '', path = ''] = request.split(' ')
    const token = claims && made.provider.token({ aud: 'https://api.example', scope: 'notes:read', ...claims })
    const headers: Record<string, string> = token === undefined ? {} : { Authorization: `Bearer ${token}` }
    const response = await fetch(new URL(path, made.url), { method, headers })
    const challenge = response.headers.get('www-authenticate') ?? ''
    // a scope is in the challenge of a 401, too
    const names = response.status === 403 ? /(?:error|scope)="[^"]*"/g : /error="[^"]*"/g
    return [`${response.status}`, ...[...challenge.matchAll(names)].map(([found]) => found)]
  }
  const bodyOf = async (path: string) => {
    const headers = { Authorization: `Bearer ${made.provider.token({ aud: 'https://api.example', ...anna })}` }
    return JSON.stringify(await (await fetch(new URL(path, made.url), { headers })).json())
  }
  return { ...made, ask, bodyOf }
}

const anna = { sub: 'anna', scope: 'notes:read' }

it('1. a token admits', async () => {
  const { ask, bodyOf } = await step(1)
  await tryTable(guide, 1, {
    'without a token': () => ask('GET /me'),
    'with a token for another API (`aud`)': () => ask('GET /me', { ...anna, aud: 'https://other.example' }),
    'with a token that has expired': () => ask('GET /me', { ...anna, exp: 1 }),
    'with a token of anna for this API': async () => {
      expect(await bodyOf('/me')).toBe('{"user":"anna"}')
      return [...(await ask('GET /me', anna)), '{ "user": "anna" }']
    },
    'while the keys of the provider cannot be read': async () => {
      const { ask: askAnew, provider: other } = await step(1)
      await other.stop()
      return askAnew('GET /me', anna)
    },
  })
})

it('2. scopes, and a public route', async () => {
  const { ask, bodyOf } = await step(2)
  await tryTable(guide, 2, {
    '`GET /health` without a token': () => ask('GET /health'),
    '`GET /notes` with the scope `notes:read`': async () => {
      expect(await bodyOf('/notes')).toBe('[{"owner":"anna","text":"buy milk"}]')
      return ask('GET /notes', anna)
    },
    '`DELETE /notes` with the scope `notes:read`': () => ask('DELETE /notes', anna),
    '`DELETE /notes` with the scope `notes:write`': () => ask('DELETE /notes', { ...anna, scope: 'notes:write' }),
    '`GET /notes` with a token that has no `scope`': () => ask('GET /notes', { ...anna, scope: undefined }),
  })
})

it('3. users of your own', async () => {
  const { ask, users } = await step(3)
  await tryTable(guide, 3, {
    'with a token of anna': () => ask('GET /notes', anna),
    'with a token of an unknown user': () => ask('GET /notes', { sub: 'carl' }),
    'with a token of anna, who was locked': () => {
      users?.set('anna', { name: 'anna', isActive: false })
      return ask('GET /notes', anna)
    },
  })
})

it('4. objects, and no open route', async () => {
  const { ask } = await step(4)
  expect(await ask('GET /health')).toEqual(['200'])
  await tryTable(guide, 4, {
    '`GET /notes/1` with a token of anna': () => ask('GET /notes/1', anna),
    '`GET /notes/1` with a token of bert': () => ask('GET /notes/1', { sub: 'bert' }),
    '`GET /notes/7` with a token of anna': () => ask('GET /notes/7', anna),
    '`GET /notes/1` without a token': () => ask('GET /notes/1'),
  })
  expect(numberOfTables(guide)).toBe(4)
})
