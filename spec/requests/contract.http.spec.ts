/**
 * The corpus as others use it: the file fits its schema, and its runner tries any server that has one of the five
 * routes.
 */
import { readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import Koa from 'koa'
import { httpBasicAuth, withAuth } from 'koa-with-auth'
import Router from '@koa/router'
import { describe, expect, it, onTestFinished } from 'vitest'
import * as runner from '../data/runner.mjs'
import { corpus } from '../support/models/corpus.js'
import { contractGuards as guards } from '../support/sites/corpusApp.js'
import { listen } from '../support/servers/server.js'

const read = (name: string): object => {
  // Safe: both files of this folder are objects
  return JSON.parse(readFileSync(new URL(`../data/${name}`, import.meta.url), 'utf8')) as object
}
const served = async (router: Router): Promise<string> => {
  const app = new Koa()
  app.silent = true
  const { url, close } = await listen(app.use(router.routes()))
  onTestFinished(() => void close())
  return url
}
const faults = (results: ReadonlyArray<runner.ContractResult>) =>
  Object.fromEntries(results.filter((one) => one.faults.length > 0).map((one) => [one.id, one.faults]))

describe('the file of hostile requests', () => {
  it('fits its schema', () => {
    const ajv = new Ajv2020({ allErrors: true, strict: true, allowUnionTypes: true })
    const fits = ajv.compile(read('bad-inputs.schema.json'))
    fits(read('bad-inputs.json'))
    expect(fits.errors).toBe(null)
  })

  it('names each case once, and the statuses of this package are never weaker than what any server must do', () => {
    expect(new Set(corpus.cases.map(({ id }) => id)).size).toBe(corpus.cases.length)
    const statuses = (expected: string) => expected.split('|').map(Number)
    for (const { id, must, expect: expected } of corpus.cases) {
      if (must === 'accept') expect(statuses(expected), id).toStrictEqual([200])
      if (must === 'refuse' && expected !== 'never-2xx') {
        expect(
          statuses(expected).filter((status) => status < 400),
          id,
        ).toStrictEqual([])
      }
    }
  })
})

describe('the runner of the contract', () => {
  it('finds no fault with the guards of this package, and tries all five routes', async () => {
    const router = new Router({ prefix: '/api' })
    let runs = 0
    for (const [route, guard] of Object.entries(guards))
      router.get(`/${route}`, guard, (ctx) => void (ctx.body = `${++runs}`))
    const { offered, results } = await runner.runContract(await served(router))
    expect(offered).toStrictEqual(['basic', 'bearer', 'headerkey', 'jwt', 'protected'])
    expect(results.length).toBe(corpus.cases.filter(({ route }) => route !== undefined).length)
    expect(faults(results)).toStrictEqual({})
  })

  it('leaves out the routes that a server does not have, and says what a guard does otherwise', async () => {
    let runs = 0
    const router = new Router({ prefix: '/api' })
    // it lets everyone in who sends the name of an account, whatever the password is
    const careless = httpBasicAuth({ authenticate: (_request, name) => name === 'admin' && { name } })
    router.get('/basic', withAuth(careless), (ctx) => void (ctx.body = `${++runs}`))
    const { offered, results } = await runner.runContract(await served(router))
    expect(offered).toStrictEqual(['basic'])
    const found = faults(results)
    expect(found['bas-022']).toStrictEqual(['let in'])
    expect(found['bas-023']).toBe(undefined)
  })

  it('notices a handler that ran for a refused request, a missing challenge, a 500 and a repeated credential', async () => {
    let runs = 0
    const router = new Router({ prefix: '/api' })
    router.get('/bearer', (ctx) => {
      const sent = ctx.get('Authorization')
      if (sent !== 'Bearer supersecret') ctx.status = sent.includes('null') ? 500 : 401
      ctx.body = sent === 'Bearer supersecret' || sent === 'Bearer s' ? `${++runs}` : `not ${sent}`
    })
    const { results } = await runner.runContract(await served(router))
    const found = faults(results)
    expect(found['brr-051']).toStrictEqual(['let in', '401 without a challenge'])
    expect(found['brr-003']).toStrictEqual(['refused', '401 without a challenge', 'repeats a credential'])
    expect(found['brr-066']).toStrictEqual(['failed (500)', 'repeats a credential'])
  })

  it('refuses a server that has none of the routes', async () => {
    await expect(runner.runContract(await served(new Router()))).rejects.toThrow('has none of the routes')
  })
})
