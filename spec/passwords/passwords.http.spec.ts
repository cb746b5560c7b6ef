/**
 * Passwords while many guesses arrive: the event loop is not blocked, a full queue is a 503, and optional packages are
 * not needed.
 */
import { mkdirSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as crypto from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startSite, type Site } from '../support/sites/sessionSite.js'
import { ask } from '../support/servers/server.js'
import { userProject, type UserProject } from '../support/projects/userProject.js'

let project: UserProject
let site: Site
const started = (): Promise<Site> =>
  startSite({ command: process.execPath, args: [join(project.folder, 'passwordSite.js')], env: { NODE_ENV: 'test' } })

beforeAll(async () => {
  project = userProject(
    ['passwordSite', 'sessionSiteLoop', 'program'].map((name) => `spec/support/sites/${name}.ts`),
    {},
  )
  site = await started()
})
afterAll(async () => {
  await site?.stop()
  project?.remove()
})

const guess = (password: string, username = 'anna') => {
  const headers = { Authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` }
  return ask(`http://127.0.0.1:${site.port}/basic`, { headers })
}
const guesses = (count: number) =>
  Promise.all(Array.from({ length: count }, (_, at) => guess(`guess ${at}`, at % 2 === 0 ? 'anna' : `user ${at}`)))

describe('200 parallel guesses', () => {
  it('P-04 none passes, and the event loop is not blocked', async () => {
    // So that the measured code is compiled
    await guesses(50)
    const round = async (): Promise<number> => {
      await site.reset()
      const before = (await site.state()).calls['handled']
      const answers = await guesses(200)
      const { heldFor, calls } = await site.state()
      // A slow machine, or one without Argon2id, refuses work that would wait for more than 5 seconds
      for (const { status, challenge } of answers) {
        expect([401, 503]).toContain(status)
        expect(challenge).toEqual(status === 401 ? expect.stringMatching(/^Basic /) : null)
      }
      expect(answers.filter(({ status }) => status === 401).length).toBeGreaterThan(0)
      expect(calls['handled']).toBe(before)
      return heldFor
    }
    // One Argon2id on the event loop would block it longer for each guess, in every round; a busy machine does so in some
    let shortest = Infinity
    for (let rounds = 0; rounds < 100 && shortest >= 200; rounds++) shortest = Math.min(shortest, await round())
    expect(shortest).toBeLessThan(200)
  })

  it('the right password among them passes', async () => {
    const guessing = guesses(50)
    let right = await guess('anna-secret')
    // A request that waits for more than 5 seconds is refused, and is sent again
    while (right.status === 503) right = await guess('anna-secret')
    expect([right.status, right.text]).toEqual([200, 'anna'])
    await guessing
  })
})

it('P-03 more than the queue takes are a 503 with Retry-After and no challenge, the others a 401, and later requests work', async () => {
  const before = (await site.state()).calls['handled']
  const answers = await guesses(500)
  const away = answers.filter(({ status }) => status === 503)
  expect(away.length).toBeGreaterThan(0)
  expect(answers.filter(({ status }) => status === 401).length).toBe(500 - away.length)
  for (const { challenge, headers, text } of away) {
    expect(challenge).toBeNull()
    expect(headers.get('Retry-After')).toMatch(/^\d+$/)
    expect(text).not.toMatch(/guess|password/)
  }
  expect((await site.state()).calls['handled']).toBe(before)
  expect((await guess('anna-secret')).status).toBe(200)
})

describe('without the optional packages', () => {
  const program = `
import { hash, needsRehash, verify } from 'koa-with-auth/passwords'
const stored = await hash('anna-secret')
const reported = async (kept) => await verify(kept, 'password').then(String, (error) => error.name + ': ' + error.message)
console.log(JSON.stringify({
  kind: stored.split('$').slice(0, 4),
  verified: [await verify(stored, 'anna-secret'), await verify(stored, 'wrong'), await verify(undefined, 'wrong')],
  needsRehash: needsRehash(stored),
  argon2: await reported('$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc'),
  bcrypt: await reported('$2b$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'),
}))
`
  let bare: UserProject
  beforeAll(() => {
    bare = userProject([], { 'main.js': program })
    unlinkSync(join(bare.folder, 'node_modules/@node-rs'))
  })
  afterAll(() => bare?.remove())

  it('P-01 hashes with Argon2id of node:crypto if it exists, otherwise with scrypt; a hash that cannot be verified names the package to install', async () => {
    const { code, output } = await bare.node('main.js')
    expect([code, output]).toEqual([0, expect.stringMatching(/^\{/)])
    const reported = JSON.parse(output) as Record<string, unknown>
    const isBuiltIn = typeof Reflect.get(crypto, 'argon2') === 'function'
    expect(reported).toEqual({
      kind: isBuiltIn
        ? ['', 'argon2id', 'v=19', 'm=19456,t=2,p=1']
        : ['', 'scrypt', 'ln=14,r=8,p=5', expect.any(String)],
      verified: [true, false, false],
      needsRehash: false,
      argon2: isBuiltIn
        ? 'true'
        : 'TypeError: verify(stored, password): stored was hashed by Argon2id; npm install @node-rs/argon2, or run Node 24.7 or later',
      bcrypt: 'TypeError: verify(stored, password): stored was hashed by bcrypt; npm install @node-rs/bcrypt',
    })
  })

  it('a package that fails to load counts as missing', async () => {
    const broken = userProject([], {
      'main.js': program,
    })
    unlinkSync(join(broken.folder, 'node_modules/@node-rs'))
    for (const name of ['argon2', 'bcrypt']) {
      const folder = join(broken.folder, 'node_modules/@node-rs', name)
      mkdirSync(folder, { recursive: true })
      writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: `@node-rs/${name}`, main: 'index.js' }))
      writeFileSync(join(folder, 'index.js'), "throw new Error('no native binding')")
    }
    const { code, output } = await broken.node('main.js')
    broken.remove()
    expect([code, output]).toEqual([0, expect.stringContaining('"verified":[true,false,false]')])
  })
})
