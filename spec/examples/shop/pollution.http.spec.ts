/**
 * R09: what a polluted prototype says finishes no ceremony. Code elsewhere in the process that merges
 * `{"__proto__":{"link":true}}` puts a field on every object.
 */
import { softwareAuthenticator } from 'koa-with-auth/testing'
import { expect, it } from 'vitest'
import { pollute } from '../../support/runs/pollute.js'
import type { JsonReply } from '../../support/servers/jsonClient.js'
import { anna, html, member } from '../../support/sites/shopClient.js'
import { pathOf, shopSite } from '../../support/sites/shopSite.js'

const inherited: ReadonlyArray<readonly [string, unknown]> = [
  ['link', true],
  ['by', 'link'],
  ['redirect', '//evil.example'],
  ['posted', ['code']],
  ['tries', 1e9],
  ['bound', false],
  ['leadsAgain', true],
  ['intents', ['signIn']],
  ['intent', 'stepUp'],
  ['elsewhere', 'wrong'],
  ['proofs', [{ method: 'passkey', at: Date.now() }]],
  ['proof', { method: 'passkey', at: Date.now() }],
  ['auth', { username: 'bert' }],
  ['principal', { username: 'bert' }],
  ['subject', 'bert'],
  ['user', 'bert'],
  ['kept', { address: 'bert@shop.example' }],
  ['returnTo', '//evil.example'],
]

it.each(inherited)('R09 an inherited %s lets no visitor in, and leads nowhere', async (name, value) => {
  const site = await shopSite({ env: { FRESH_MS: '1' } })
  const visitor = await site.signedIn()
  pollute({ [name]: value })
  const refused = async (what: string, reply: Promise<JsonReply>): Promise<void> => {
    expect((await reply).status, what).toBeGreaterThanOrEqual(400)
  }
  const [asking, other] = [site.client(), site.client()]
  const asked = await asking.post('/sign-in/mail', { address: 'anna@shop.example' })
  expect([asked.status, asked.headers.get('location')]).toEqual([200, null])
  const [handle, { link, code }] = [member(asked, 'handle'), await site.mail()]
  await refused('a wrong code', asking.post('/sign-in/mail/code', { handle, code: '00000000' }))
  await refused('no code', asking.post('/sign-in/mail/code', { handle }))
  await refused('the link in another browser', other.post(pathOf(link)))
  await refused('the code in another browser', other.post('/sign-in/mail/code', { handle, code }))
  await refused('a handle of another kind', asking.post('/sign-in/code', { handle, code }))
  await refused('a wrong password', other.post('/sign-in/password', { ...anna, password: 'wrong' }))
  await refused('no password', other.post('/sign-in/password', { username: 'anna' }))
  await refused('a passkey of no user', other.post('/sign-in/passkey', {}))
  for (const one of [asking, other]) await refused('who is signed in', one.get('/me'))
  await refused('a stale proof', visitor.post('/transfer'))
  await refused('a proof by another method', visitor.get('/vault'))
  expect(member(await visitor.get('/me'), 'proofs')).toEqual([
    { method: 'password', at: expect.any(Number) as unknown },
  ])

  // what is right still works
  expect((await asking.post('/sign-in/mail/code', { handle, code })).status).toBe(204)
  expect(member(await asking.get('/me'), 'user')).toBe('anna')
  const form = { 'content-type': 'application/x-www-form-urlencoded', ...html }
  const led = await other.send('POST', '/sign-in/password', 'username=anna&password=anna-secret', form)
  expect([led.status, led.headers.get('location')]).toEqual([303, '/'])
})

const options: ReadonlyArray<readonly [string, unknown, object]> = [
  ['advancedFIDOConfig', { userVerification: 'discouraged' }, { userVerified: false }],
  ['advancedFIDOConfig', { userVerification: 'discouraged' }, { userPresent: false }],
  ['requireUserVerification', false, { userVerified: false }],
  ['expectedType', 'webauthn.create', { type: 'webauthn.create' }],
  ['expectedTopOrigin', ['https://evil.example'], { crossOrigin: true, topOrigin: 'https://evil.example' }],
]

it.each(options)(
  'R09 an inherited %s: %j accepts no passkey that is refused without it',
  async (name, value, wrong) => {
    const site = await shopSite()
    const visitor = await site.signedIn()
    const { origin } = site
    const [phone, other] = [softwareAuthenticator({ origin }), softwareAuthenticator({ origin })]
    const optionsAt = async (path: string) => (await visitor.post(`${path}/options`, {})).body as never
    expect((await visitor.post('/passkeys', phone.create(await optionsAt('/passkeys')))).status).toBe(201)
    const created = other.create(await optionsAt('/passkeys'), 'type' in wrong ? { type: 'webauthn.get' } : wrong)
    const wrongly = phone.get(await optionsAt('/sign-in/passkey'), wrong)
    const rightly = phone.get(await optionsAt('/sign-in/passkey'))
    pollute({ [name]: value })
    expect((await visitor.post('/passkeys', created)).status).toBe(400)
    expect((await visitor.post('/sign-in/passkey', wrongly)).status).toBe(400)
    expect((await visitor.post('/sign-in/passkey', rightly)).status).toBe(200)
  },
)
