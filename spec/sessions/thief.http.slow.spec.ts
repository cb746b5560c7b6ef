/**
 * The thief: who copies the token of a bound sign-in, the rows of the store, the records and a heap dump of the site gets nothing with
 * another key. Nor is a token of a provider in any of these, or in the answer of another user.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { testIssuer } from 'koa-with-auth/testing'
import { expect, it, onTestFinished } from 'vitest'
import { userProject } from '../support/projects/userProject.js'
import { dpopClient, ORIGIN, withProof, type DpopClient } from '../support/servers/dpopClient.js'
import { userAgent } from '../support/servers/userAgent.js'
import { startSite } from '../support/sites/sessionSite.js'

const start = async () => {
  const issuer = await testIssuer()
  const project = userProject(['spec/support/sites/boundSite.ts', 'spec/support/sites/program.ts'], {})
  const args = ['--expose-gc', '--stack-trace-limit=50', join(project.folder, 'boundSite.js'), issuer.issuer]
  const site = await startSite({ command: process.execPath, args, env: { NODE_ENV: 'test' } })
  const origin = `http://127.0.0.1:${site.port}`
  onTestFinished(async () => {
    await site.stop()
    project.remove()
    await issuer.stop()
  })
  const proofOf = (by: DpopClient, method: string, path: string, token?: string) =>
    by.proof(token ?? '', {
      claims: { htm: method, htu: ORIGIN + path, ...(token === undefined && { ath: undefined }) },
    })
  const ask = async (method: string, path: string, headers: Readonly<Record<string, string>> = {}) => {
    const answer = await fetch(origin + path, { method, headers })
    return { status: answer.status, body: await answer.text() }
  }
  const stolen = async () => {
    const { heap, ...others } = JSON.parse((await ask('POST', '/stolen')).body) as { heap: string }
    return { heap: readFileSync(heap, 'latin1'), written: JSON.stringify(others) }
  }
  return { origin, issuer, ask, proofOf, stolen }
}

it('a copy of the token, the rows, the records and the memory is worth nothing without the key', async () => {
  const { ask, proofOf, stolen } = await start()
  const [client, thief] = [await dpopClient(), await dpopClient()]
  const signedIn = await ask('POST', '/sign-in', { DPoP: await proofOf(client, 'POST', '/sign-in') })
  const { token } = JSON.parse(signedIn.body) as { token: string }
  const proofs: string[] = []
  const asClient = async (path: string) => {
    const proof = await proofOf(client, 'GET', path, token)
    proofs.push(proof)
    return (await ask('GET', path, withProof(token, proof))).status
  }
  expect([await asClient('/me'), await asClient('/fails'), await asClient('/me')]).toEqual([200, 500, 200])
  // what V8 and the parser remember is of another request
  for (let at = 0; at < 3; at++) await ask('GET', '/me', withProof('x'.repeat(60), 'y'))
  const { heap, written } = await stolen()
  expect(heap).toContain('the handler failed')
  for (const secret of [token.slice(4, 47), ...proofs]) {
    expect([written.includes(secret), heap.includes(secret)]).toEqual([false, false])
  }
  // whatever looks like a token, a digest or an id
  const found = new Set(
    [...`${written} ${heap}`.matchAll(/(?<![\w-])(?:kwa_)?[\w-]{43,49}(?![\w-])/g)].map(([text]) => text),
  )
  const candidates = [token, ...[...found].slice(0, 300)]
  const tried = new Set<number>()
  for (const candidate of candidates) {
    tried.add((await ask('GET', '/me', withProof(candidate, await proofOf(thief, 'GET', '/me', candidate)))).status)
    tried.add((await ask('GET', '/me', { Authorization: `Bearer ${candidate}` })).status)
    tried.add((await ask('GET', '/me', { Cookie: `session=${candidate}` })).status)
  }
  for (const proof of proofs) tried.add((await ask('GET', '/me', withProof(token, proof))).status)
  expect([candidates.length > 3, [...tried]]).toEqual([true, [401]])
  expect(await asClient('/me')).toBe(200)
})

it('a provider’s token is in no row, record and memory, and in the answer of its own user alone', async () => {
  const { origin, issuer, stolen } = await start()
  const names = Array.from({ length: 8 }, (_, at) => `user-${at}`)
  const browsers = new Map<string, ReturnType<typeof userAgent>>()
  for (const name of names) {
    issuer.subject = name
    const browser = userAgent()
    // of a token that is over at once, so that each request refreshes
    issuer.expiresIn = 5
    await browser.open(`${origin}/begin`, (url) => url === `${origin}/`)
    browsers.set(name, browser)
  }
  issuer.expiresIn = 300
  const asked = [...names, ...names, ...names]
  const answers = await Promise.all(asked.map((name) => browsers.get(name)!.send(`${origin}/token`)))
  const tokens = new Map(
    answers.map(({ body }) => JSON.parse(body) as { user: string; token: string }).map((one) => [one.user, one.token]),
  )
  expect([tokens.size, answers.every(({ status }) => status === 200)]).toEqual([names.length, true])
  for (const [at, { body }] of answers.entries()) {
    const inAnswer = [...tokens].filter(([, token]) => body.includes(token)).map(([name]) => name)
    expect(inAnswer).toEqual([asked[at]])
  }
  await userAgent().send(`${origin}/token`)
  const { heap, written } = await stolen()
  const secrets = [...tokens.values(), ...issuer.tokenRequests.flatMap((one) => one['refresh_token'] ?? [])]
  expect(secrets.length).toBeGreaterThan(names.length)
  const left = secrets.filter((secret) => heap.includes(secret) || written.includes(secret))
  expect(left).toEqual([])
})
