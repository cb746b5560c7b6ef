/** The programs of the guide about devices, as they are written there. */
import type Router from '@koa/router'
import type { Sessions } from 'koa-with-auth/sessions'
import { memoryStore, type Store } from 'koa-with-auth/stores'
import { expect, it } from 'vitest'
import { guideProgram } from '../support/papers/guidePrograms.js'
import { deviceSite, type Device } from '../support/sites/deviceSite.js'

type CommandLine = (store: Store, made: Sessions<Device>) => Router

const commandLine = async (): Promise<CommandLine> =>
  (await guideProgram<{ readonly commandLine: CommandLine }>('devices', 'const commandLine =')).commandLine

it('a command line is signed in by a code that its user approves in the browser, once', async () => {
  const store = memoryStore()
  const made = await commandLine()
  const site = await deviceSite(
    {},
    store,
    undefined,
    (router, parts) => void router.use('/cli', made(store, parts).routes()),
  )
  const { ask } = site
  const Cookie = site.cookieIn(await ask('/cookie', {}, {}))
  const begun = (await ask('/cli/device/code', {}, {})).body as object as { secret: string; code: string }
  const poll = () => ask('/cli/device/token', {}, { secret: begun.secret })
  expect((await poll()).status).toBe(400)
  const approve = (code: string, fields: Record<string, string> = { Cookie }) =>
    ask('/cli/device/approve', fields, { code })
  expect((await approve(begun.code, {})).status).toBe(401)
  expect((await approve(begun.code, { Cookie, Origin: 'https://evil.example' })).status).toBe(403)
  expect((await approve('00000000x')).status).toBe(404)
  expect((await poll()).status).toBe(400)
  const approved = await Promise.all([approve(begun.code), approve(begun.code)])
  expect(approved.map(({ status }) => status).sort()).toEqual([204, 404])
  expect((await ask('/cli/device/token', {}, { secret: begun.code })).status).toBe(400)
  const polled = await Promise.all([poll(), poll()])
  expect(polled.map(({ status }) => status).sort()).toEqual([200, 400])
  const { access_token: token } = polled.find(({ status }) => status === 200)!.body
  expect((await ask('/me', { Authorization: `Bearer ${token}` })).body).toMatchObject({ auth: { username: 'anna' } })
  expect((await poll()).status).toBe(400)
})
