/** The guide "A sign-in page", as it is written there. */
import type Koa from 'koa'
import { describe, expect, it } from 'vitest'
import { guideProgram } from '../support/papers/guidePrograms.js'
import { duringSuite } from '../support/runs/duringSuite.js'
import { ask, cookiesIn, listen } from '../support/servers/server.js'

const program = (block: number) =>
  duringSuite(
    async () => listen((await guideProgram<{ readonly app: Koa }>('sign-in-page', block)).app),
    ({ close }) => close(),
  )
const [short, served] = [program(0), program(1)]

const browser = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
const post = (path: string, body: string, headers: Record<string, string> = {}, { url } = served()) =>
  ask(url + path, {
    method: 'POST',
    headers: { ...browser, 'Content-Type': 'application/x-www-form-urlencoded', ...headers },
    body,
  })
const good = 'username=anna&password=anna-secret'

describe('the guide "A sign-in page"', () => {
  it('sends a browser to the form, which says what was wrong, and leads back', async () => {
    const refused = await ask(`${short().url}/account?tab=2`, { headers: browser })
    const location = refused.headers.get('location') ?? ''
    expect([refused.status, location]).toEqual([303, '/sign-in?returnTo=%2Faccount%3Ftab%3D2'])
    expect((await ask(`${short().url}/account`)).status).toBe(401)
    const { text } = await ask(short().url + location, { headers: browser })
    const [, returnTo = ''] = /name="returnTo" value="([^"]*)"/.exec(text) ?? []
    const send = (password: string) =>
      post('/sign-in', new URLSearchParams({ username: 'anna', password, returnTo }).toString(), {}, short())
    const wrong = await send('bad')
    expect([wrong.status, wrong.headers.get('content-type')]).toEqual([403, 'text/html; charset=utf-8'])
    expect(wrong.text).toContain('role="alert"')
    const signedIn = await send('anna-secret')
    expect([signedIn.status, signedIn.headers.get('location')]).toEqual([303, '/account?tab=2'])
  })

  it('does the same with a form that does more', async () => {
    const refused = await ask(`${served().url}/account?tab=2`, { headers: browser })
    expect(refused.status).toBe(303)
    const location = refused.headers.get('location') ?? ''
    expect(location).toBe('/sign-in?returnTo=%2Faccount%3Ftab%3D2')
    const shown = await ask(served().url + location, { headers: browser })
    expect(shown.status).toBe(200)
    const action = /action="([^"]*)"/.exec(shown.text)?.[1] ?? ''
    const signedIn = await post(action, good)
    expect(signedIn.status).toBe(303)
    expect(signedIn.headers.get('location')).toBe('/account?tab=2')
    const Cookie = cookiesIn(signedIn.headers)
    expect(await ask(`${served().url}/account?tab=2`, { headers: { ...browser, Cookie } })).toMatchObject({
      status: 200,
      text: 'Signed in as anna',
    })
  })

  it('answers 401 with a challenge to other clients, and to writes', async () => {
    for (const init of [{}, { headers: { Accept: 'application/json' } }]) {
      const { status, challenge } = await ask(`${served().url}/account`, init)
      expect([status, challenge]).toStrictEqual([401, 'Session realm="api"'])
    }
  })

  it.each(['https://evil.example/', '//evil.example', '/\\evil.example', '/%09/evil.example/'])(
    'never leads to another site: %s',
    async (returnTo) => {
      const { status, headers } = await post(`/sign-in?returnTo=${encodeURIComponent(returnTo)}`, good)
      expect([status, headers.get('location')]).toStrictEqual([303, '/'])
    },
  )

  it('shows the page again with a message, and escapes the path', async () => {
    const wrong = await post(`/sign-in?returnTo=${encodeURIComponent('/a"><script>')}`, 'username=anna&password=bad')
    expect(wrong.status).toBe(401)
    expect(wrong.text).toContain('Wrong user name or password.')
    expect(wrong.text).not.toContain('<script>')
    expect((await post('/sign-in', 'username=anna')).text).toContain('Enter your user name')
    expect((await post('/sign-in', good, { 'Sec-Fetch-Site': 'cross-site' })).status).toBe(403)
  })

  it('counts wrong passwords', async () => {
    const statuses: number[] = []
    for (let at = 0; at < 7; at++) statuses.push((await post('/sign-in', `username=ben&password=${at}`)).status)
    expect(statuses).toStrictEqual([401, 401, 401, 401, 401, 429, 429])
    expect((await post('/sign-in', 'username=ben&password=1')).headers.get('retry-after')).toMatch(/^\d+$/)
  })
})
