/**
 * Cross-site request forgery: Go's CrossOriginProtection runs when a credential passes that browsers send by
 * themselves.
 */
import { authSettings, sessionAuth, withAuth, type AuthSettings } from 'koa-with-auth'
import { describe, test } from 'vitest'
import { expectDenied, expectPassed, operation, type Answer } from '../support/models/behavior.js'
import { signInAs, withSessions } from '../support/models/behaviorSession.js'

const anna = { username: 'anna' }

const site = async (settings: AuthSettings = {}, proxy = false) => {
  const api = await operation(withAuth(sessionAuth()), (app) => {
    app.proxy = proxy
    app.use(authSettings(settings))
    withSessions()(app)
  })
  const Cookie = await signInAs(api, anna)
  const send = (method: string, headers: Record<string, string>): Promise<Answer> =>
    api.ask('/x', { method, headers: { Host: 'example.com', Cookie, ...headers } })
  return { ...api, send }
}

const expectVerdict = (answer: Answer, allowed: boolean): void => {
  if (allowed) expectPassed(answer, anna)
  else expectDenied(answer, 403, [], 'CSRF check Failed')
}

describe('the check runs for a session; its table is in CrossOrigin.unit', () => {
  test('B-33 a field that is sent twice is not read as either of its values', async () => {
    const api = await site()
    const Cookie = await signInAs(api, anna)
    for (const twice of [
      { 'Sec-Fetch-Site': ['same-origin', 'cross-site'] },
      { 'Sec-Fetch-Site': ['none', 'none'] },
      { Origin: ['https://example.com', 'https://attacker.example'] },
      { Origin: ['https://attacker.example', 'https://example.com'] },
    ]) {
      const headers = { Host: 'example.com', Cookie, ...twice }
      expectVerdict(await api.ask('/x', { method: 'POST', headers }), false)
    }
  })

  test('B-32 X-Forwarded-Host counts only behind a trusted proxy', async () => {
    const forwarded = { 'X-Forwarded-Host': 'shop.example', Origin: 'https://shop.example' }
    const direct = await site()
    expectVerdict(await direct.send('POST', forwarded), false)
    const behind = await site({}, true)
    expectVerdict(await behind.send('POST', forwarded), true)
    expectVerdict(await behind.send('POST', { ...forwarded, Origin: 'https://example.com' }), false)
  })
})
