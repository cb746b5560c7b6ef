/** what a template has only to be tried is not there where others can reach it. */
import type Koa from 'koa'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { repository } from '../support/projects/typecheck.js'
import { listen } from '../support/servers/server.js'

interface Service {
  readonly service: (databaseUrl?: string) => Promise<{ readonly app: Koa }>
}

let imported = 0
/** A template as a process with these variables runs it. */
const template = async (name: 'sessions' | 'tokens', env: Readonly<Record<string, string | undefined>>) => {
  onTestFinished(() => void vi.unstubAllEnvs())
  for (const variable of ['NODE_ENV', 'HOST', 'KEYS', 'PROXY', 'ISSUER']) vi.stubEnv(variable, env[variable])
  // Safe: each template exports it
  const file = `${repository}examples/create/templates/${name}/src/app.ts?${imported++}`
  return (await import(/* @vite-ignore */ file)) as Service
}

const KEYS = 'a signing key of at least 32 characters'

const reachable: ReadonlyArray<readonly [string | undefined, string | undefined]> = [
  ['production', undefined],
  ['prod', undefined],
  ['Production', '127.0.0.1'],
  ['staging', 'localhost'],
  ['development', '0.0.0.0'],
  [undefined, '::'],
  [undefined, '192.0.2.1'],
]

const signedIn = async (app: Koa, headers: Readonly<Record<string, string>> = {}, password = 'anna-secret') => {
  const { url } = await listen(app)
  const body = new URLSearchParams({ email: 'anna@example.com', password })
  return fetch(`${url}/api/sign-in`, { method: 'POST', body, headers })
}

describe('A-44 the template sessions', () => {
  it.each(reachable)('with NODE_ENV %s and HOST %s needs KEYS, and knows no users', async (NODE_ENV, HOST) => {
    const bare = await template('sessions', { NODE_ENV, HOST })
    await expect(bare.service('file::memory:')).rejects.toThrow(/set KEYS/)
    const { service } = await template('sessions', { NODE_ENV, HOST, KEYS })
    const { app } = await service('file::memory:')
    expect((await signedIn(app)).status).toBe(401)
  })

  it.each([
    [undefined, undefined],
    ['development', 'localhost'],
  ])('with NODE_ENV %s and HOST %s can be tried', async (NODE_ENV, HOST) => {
    const { service } = await template('sessions', { NODE_ENV, HOST })
    const { app } = await service('file::memory:')
    expect((await signedIn(app)).status).toBe(204)
  })

  it.each([
    ['1', 204],
    [undefined, 429],
  ])('with PROXY %s, after the wrong passwords of one visitor, another one gets %i', async (PROXY, status) => {
    const { service } = await template('sessions', { PROXY })
    const { app } = await service('file::memory:')
    for (let at = 0; at < 6; at++) await signedIn(app, { 'X-Forwarded-For': '192.0.2.1' }, 'wrong')
    expect((await signedIn(app, { 'X-Forwarded-For': '192.0.2.2' })).status).toBe(status)
  })
})

describe('A-44 the template tokens', () => {
  it.each(reachable)('with NODE_ENV %s and HOST %s makes no tokens', async (NODE_ENV, HOST) => {
    const { service } = await template('tokens', { NODE_ENV, HOST })
    await expect(service()).rejects.toThrow(/set ISSUER/)
  })
})
