/** How settings are added to those of an outer level. */
import Koa, { type Context } from 'koa'
import { authSettings, type AuthResponse, type AuthSettings } from 'koa-with-auth'
import { expect, it } from 'vitest'
import { checkOptions } from '../../src/core/options.js'
import { defaults, type Settings } from '../../src/core/Settings.js'
import { settingsOf } from '../../src/core/Exchange.js'
import { isSettings, settings, settingsFrom } from '../../src/koa/settings.js'

const outer: Settings = {
  csrf: false,
  trustedOrigins: new Set(['https://a.example']),
  realm: 'outer',
  timeout: 1,
  errorMapper: () => ({ status: 418 }),
  explain: true,
  state: 'account',
  exceptionHandlers: new Map([[Error.prototype, (): AuthResponse => ({ status: 418 })]]),
}

const errorMapper = (): AuthResponse => ({ status: 401 })
const given: ReadonlyArray<[keyof AuthSettings, unknown, unknown?]> = [
  ['csrf', true],
  ['realm', 'inner'],
  ['timeout', 2],
  ['errorMapper', errorMapper],
  ['explain', false],
  ['state', 'user'],
  ['trustedOrigins', ['https://b.example'], new Set(['https://b.example'])],
]

it.each(given)('%s is set, and all other settings are those of the outer level', (name, value, settled = value) => {
  expect(settingsFrom(checkOptions('x', { [name]: value }, settings))(outer)).toStrictEqual({
    ...outer,
    [name]: settled,
  })
})

it.each(given)('%s that is undefined is not set', (name) => {
  expect(settingsFrom(checkOptions('x', { [name]: undefined }, settings))(outer)).toStrictEqual(outer)
})

it('the middleware adds to the settings above it, for each request', async () => {
  const seen: Settings[] = []
  const see = (ctx: Context) => void seen.push(settingsOf(ctx.request))
  const realm = authSettings({ realm: 'inner' })
  const context = () => new Koa().createContext({ headers: {} } as never, {} as never)
  const [bare, within] = [context(), context()]
  await realm(bare, async () => see(bare))
  await authSettings({ timeout: 5 })(within, () => realm(within, async () => see(within)))
  expect(seen).toStrictEqual([
    { ...defaults, realm: 'inner' },
    { ...defaults, realm: 'inner', timeout: 5 },
  ])
})

it('isSettings recognizes the middleware', () => {
  expect(isSettings(authSettings({}))).toBe(true)
})
