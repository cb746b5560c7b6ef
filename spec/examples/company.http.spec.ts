/** The programs of the guide "A company", as they are written there. */
import { createHash } from 'node:crypto'
import type Koa from 'koa'
import { expect, it } from 'vitest'
import { servedProgram } from '../support/papers/guidePrograms.js'
import { jsonClient } from '../support/servers/jsonClient.js'

interface Program {
  readonly app: Koa
  readonly mails: { to: string; text: string }[]
  readonly range: { of: (prefix: string) => Promise<string> }
}

/** Serves a program of the guide. */
const program = async (block: number) => {
  const made = await servedProgram<Program>('company', block)
  made.app.on('error', (error) => console.error(error))
  const { url } = made
  /** A client that keeps its cookies. */
  const client = (agent = 'a') => {
    const { send } = jsonClient(() => url)
    return async (method: string, path: string, body?: object, headers: Record<string, string> = {}) => {
      const { pathname, search } = new URL(path, url)
      const reply = await send(method, pathname + search, body, { 'User-Agent': agent, ...headers })
      return [reply.status, reply.body] as const
    }
  }
  const signIn = async (username: string, agent?: string, password = 'a long example password') => {
    const send = client(agent)
    expect((await send('POST', '/sign-in', { username, password }))[0]).toBe(204)
    return send
  }
  return { ...made, client, signIn }
}

it('teams, roles and invitations', async () => {
  const { signIn } = await program(0)
  const [anna, bert] = [await signIn('anna'), await signIn('bert')]
  expect(await anna('GET', '/teams/blue')).toEqual([200, { role: 'owner' }])
  expect((await bert('GET', '/teams/blue'))[0]).toBe(404)
  const [, link] = await anna('POST', '/teams/blue/invitations/bert@shop.example')
  expect((await bert('POST', String(link).replace('role=member', 'role=owner')))[0]).toBe(401)
  expect((await anna('POST', String(link)))[0]).toBe(403)
  expect(await bert('GET', String(link))).toEqual([200, expect.stringContaining('<form method="post">')])
  expect((await bert('POST', String(link)))[0]).toBe(204)
  expect((await bert('POST', String(link)))[0]).toBe(410)
  expect(await bert('GET', '/teams/blue')).toEqual([200, { role: 'member' }])
  expect((await bert('POST', '/teams/blue/invitations/carl@shop.example'))[0]).toBe(403)
  // a change counts at once
  expect((await anna('DELETE', '/teams/blue/members/bert'))[0]).toBe(204)
  expect((await bert('GET', '/teams/blue'))[0]).toBe(404)
})

it('accounts', async () => {
  const { signIn, client, mails, range } = await program(1)
  const first = await signIn('anna', 'phone 1')
  const second = await signIn('anna', 'phone 1')
  // the label is known
  expect(mails).toEqual([{ to: 'anna@shop.example', text: 'A new sign-in: phone 1' }])
  for (const agent of ['phone 2', 'phone 3']) await signIn('anna', agent)
  expect((await first('GET', '/account'))[0]).toBe(401)
  const [, account] = await second('GET', '/account')
  expect(account).toEqual({
    email: 'anna@shop.example',
    devices: expect.arrayContaining(['phone 1', 'phone 2', 'phone 3']),
  })

  // another address
  mails.length = 0
  expect((await second('POST', '/account/email', { address: 'anna@home.example' }))[0]).toBe(204)
  await expect.poll(() => mails.length).toBe(1)
  const { pathname, searchParams } = new URL(mails[0]?.text ?? '')
  const press = () => client()('POST', pathname, Object.fromEntries(searchParams))
  expect((await press())[0]).toBe(200)
  // a double click leads on, and changes nothing more
  expect((await press())[0]).toBe(200)
  expect(mails.map(({ to }) => to)).toEqual(['anna@home.example', 'anna@shop.example'])
  expect((await second('GET', '/account'))[1]).toMatchObject({ email: 'anna@home.example' })

  // a password that has leaked
  const digest = createHash('sha1').update('correct horse battery staple again').digest('hex').toUpperCase()
  range.of = (prefix) => Promise.resolve(prefix === digest.slice(0, 5) ? `${digest.slice(5)}:3` : '')
  expect((await second('POST', '/account/password', { password: 'correct horse battery staple again' }))[0]).toBe(422)
  expect((await second('POST', '/account/password', { password: 'another long example password' }))[0]).toBe(204)
  expect((await second('GET', '/account'))[0]).toBe(401)

  const again = await signIn('anna', 'phone 1', 'another long example password')
  expect((await again('DELETE', '/account'))[0]).toBe(204)
  expect((await again('GET', '/account'))[0]).toBe(401)
  expect((await client()('POST', '/sign-in', { username: 'anna', password: 'another long example password' }))[0]).toBe(
    403,
  )
})

it('service accounts', async () => {
  const { client } = await program(2)
  const admin = { Authorization: 'Bearer an-example-token-of-anna' }
  const [, made] = await client()('POST', '/services/reports/keys', undefined, admin)
  const orders = () => client()('GET', '/orders', undefined, { 'X-API-Key': (made as { key: string }).key })
  expect(await orders()).toEqual([200, { for: 'service reports' }])
  expect((await client()('DELETE', '/services/reports/keys', undefined, admin))[0]).toBe(204)
  expect((await orders())[0]).toBe(401)
})
