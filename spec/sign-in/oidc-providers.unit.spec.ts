/** The table of the guide "Signing in with a provider": `oidc` or `oauth2` takes the settings of each row. */
import { readFileSync } from 'node:fs'
import { runInNewContext } from 'node:vm'
import { oauth2, oidc, type OAuth2Options } from 'koa-with-auth/sign-in/oidc'
import { expect, it } from 'vitest'
import { repository } from '../support/projects/typecheck.js'

/** The settings that a cell has in code, such as `issuer: '...'`. */
const settingsIn = (cell: string): Record<string, unknown> => {
  const code = [...cell.matchAll(/`(\w+: [^`]+)`/g)].map(([, text = '']) => text)
  const written = code.map((text) =>
    text.replace(/\b(?:TENANT|REALM|POOL|POLICY|VERSION|HOST|DOMAIN|NAME|REGION)\b/g, 'a'),
  )
  const valueOf = (text: string): unknown => structuredClone(runInNewContext(`({ ${text} })`))
  // Safe: literals of the guide, whose names stand for a value
  return Object.assign({}, ...written.map(valueOf)) as Record<string, unknown>
}

const rows = readFileSync(`${repository}examples/guides/providers.md`, 'utf8')
  .split('\n')
  .filter((line) => /^\| (?!-|Provider|What|`)/.test(line) && /oidc|oauth2|issuer/.test(line))
  .map((line) => line.split(' | ').map((cell) => cell.replace(/^\| | \|$/g, '').trim()))
  .map(([name = '', options = '', also = '']) => [name, options, also] as const)

it('has fifteen providers or more', () => expect(rows.length).toBeGreaterThanOrEqual(15))

it.each(rows)('%s', (name, options, also) => {
  const isPost = options.includes('client_secret_post')
  const client = {
    id: 'shop',
    secret: 'a secret of the client, 32 bytes',
    ...(isPost && { authentication: 'client_secret_post' as const }),
  }
  const callback = '/callback'
  const { pkce, ...others } = settingsIn(also)
  const given = settingsIn(options)
  if (options.startsWith('`oauth2`')) {
    const base = { authorize: 'https://a.example/authorize', token: 'https://a.example/token' }
    const plain = { ...base, name: 'a', client, callback, subject: () => 'a', ...given }
    expect(oauth2(plain as OAuth2Options).name).toContain('oauth2:')
    return
  }
  const issuer = 'https://login.example/realms/shop'
  const made = { issuer, client, callback, ...given }
  expect(oidc(made).issuer).toBe(made.issuer)
  expect(oidc({ ...made, ...others }).issuer).toBe(made.issuer)
  if (pkce !== undefined)
    oauth2({ name, authorize: issuer, token: issuer, client, callback, subject: () => 'a', pkce: false })
})
