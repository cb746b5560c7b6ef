/** The steps of the guide "An API with tokens", as they are written there. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import type Koa from 'koa'
import type { TestIssuer } from 'koa-with-auth/testing'
import { expect, it, onTestFinished } from 'vitest'
import { blocksOf } from '../support/papers/docExamples.js'
import { repository } from '../support/projects/typecheck.js'
import { listen } from '../support/servers/server.js'

interface Step {
  readonly app: Koa
  readonly provider: TestIssuer
  readonly users?: Map<string, { name: string; isActive: boolean }>
}

let served = 0

/** Serves a step of the guide, each time anew. */
const step = async (number: number) => {
  const folder = `${repository}spec/.generated/api-with-tokens-${process.pid}-${served++}`
  mkdirSync(folder, { recursive: true })
  const file = `${folder}/${number}.ts`
  writeFileSync(file, blocksOf('examples/guides/api-with-tokens.md')[number - 1]?.code ?? '')
  // Safe: the block exports it
  const made = (await import(/* @vite-ignore */ pathToFileURL(file).href)) as Step
  rmSync(folder, { recursive: true })
  const { url } = await listen(made.app)
  onTestFinished(() => made.provider.stop())
  /** The status, or the error of the challenge; `claims` is left out for no token. */
  const ask = async (request: string, claims?: Readonly<Record<string, unknown>>) => {
    const [method = '', path = ''] = request.split(' ')
    const token = claims && made.provider.token({ aud: 'https://api.example', scope: 'notes:read', ...claims })
    const headers: Record<string, string> = token === undefined ? {} : { Authorization: `Bearer ${token}` }
    const { status, headers: answered } = await fetch(new URL(path, url), { method, headers })
    const error = /error="(\w+)"/.exec(answered.get('www-authenticate') ?? '')?.[1]
    return error === undefined ? `${status}` : `${status} ${error}`
  }
  return { ...made, ask }
}

const anna = { sub: 'anna' }

it('1. a token admits', async () => {
  const { ask } = await step(1)
  expect(await ask('GET /me')).toBe('401')
  expect(await ask('GET /me', { ...anna, aud: 'https://other.example' })).toBe('401 invalid_token')
  expect(await ask('GET /me', { ...anna, exp: 1 })).toBe('401 invalid_token')
  expect(await ask('GET /me', anna)).toBe('200')
})

it('1. the keys of the provider cannot be read', async () => {
  const { ask, provider } = await step(1)
  await provider.stop()
  expect(await ask('GET /me', anna)).toBe('503')
})

it('2. scopes, and a public route', async () => {
  const { ask } = await step(2)
  expect(await ask('GET /health')).toBe('200')
  expect(await ask('GET /notes', anna)).toBe('200')
  expect(await ask('DELETE /notes', anna)).toBe('403 insufficient_scope')
  expect(await ask('DELETE /notes', { ...anna, scope: 'notes:write' })).toBe('204')
  expect(await ask('GET /notes', { ...anna, scope: undefined })).toBe('403 insufficient_scope')
})

it('3. users of your own', async () => {
  const { ask, users } = await step(3)
  expect(await ask('GET /notes', anna)).toBe('200')
  expect(await ask('GET /notes', { sub: 'carl' })).toBe('401 invalid_token')
  users?.set('anna', { name: 'anna', isActive: false })
  expect(await ask('GET /notes', anna)).toBe('401 invalid_token')
})

it('4. objects, and no open route', async () => {
  const { ask } = await step(4)
  expect(await ask('GET /health')).toBe('200')
  expect(await ask('GET /notes/1', anna)).toBe('200')
  expect(await ask('GET /notes/1', { sub: 'bert' })).toBe('404')
  expect(await ask('GET /notes/7', anna)).toBe('404')
  expect(await ask('GET /notes/1')).toBe('401')
})
