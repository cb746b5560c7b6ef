/** B-11 Requests without a Host, or with two (RFC 9112 §3.2): no guard admits them, and no empty Host has an origin. */
import Koa from 'koa'
import { apiKeyCookie, httpBearer, optional, type AuthenticatorLike } from 'koa-with-auth'
import { on, type Decision } from 'koa-with-auth/events'
import { guardUpgrade } from 'koa-with-auth/upgrades'
import { describe, expect, it, onTestFinished } from 'vitest'
import { guardedApp, sendCounted } from '../support/sites/guardedApp.js'
import { sendRaw, valuesOf } from '../support/servers/rawSocket.js'
import { listen } from '../support/servers/server.js'
import { listenWithUpgrades } from '../support/servers/upgradeServer.js'

const bearer = httpBearer({ authenticate: (_request, token) => token === 'good' && { user: 'anna' } })
const cookie = apiKeyCookie({ paramName: 'id', authenticate: (_request, key) => key === 'k1' && { user: 'anna' } })
const good = 'Authorization: Bearer good'

describe('an upgrade', () => {
  const upgraded = async (auth: AuthenticatorLike, version: string, lines: ReadonlyArray<string>) => {
    const records: Decision[] = []
    const end = on('decision', (record) => records.push(record))
    const app = new Koa()
    const guard = guardUpgrade(app, auth, { route: '/live' })
    const { port, admitted, errors, close } = await listenWithUpgrades(app, () => guard)
    onTestFinished(async () => {
      end()
      await close()
    })
    const head = [`GET /live HTTP/${version}`, 'Connection: Upgrade', 'Upgrade: websocket', ...lines, '', '']
    const answer = await sendRaw(port, head.join('\r\n'))
    return { answer, admitted, errors, records }
  }

  it.each([
    { what: 'without Host', version: '1.1', lines: [good] },
    { what: 'with HTTP/1.0, without Host', version: '1.0', lines: [good] },
    { what: 'with an empty Host', version: '1.1', lines: ['Host:', good] },
    { what: 'with two Hosts', version: '1.1', lines: ['Host: a.example', 'Host: b.example', good] },
    { what: 'with the same Host twice', version: '1.1', lines: ['Host: a.example', good, 'host: a.example'] },
    {
      what: 'with two Hosts and a matching Origin',
      version: '1.1',
      lines: ['Host: a', 'Host: b', good, 'Origin: http://a'],
    },
    { what: 'without a credential and without Host', version: '1.1', lines: [] },
  ])('$what is a 400, and no hook is called', async ({ version, lines }) => {
    let asked = 0
    const auth = httpBearer({ authenticate: () => ({ user: `anna ${asked++}` }) })
    const { answer, admitted, errors, records } = await upgraded(auth, version, lines)
    expect(answer.status).toBe(400)
    expect(JSON.parse(answer.body)).toMatchObject({ status: 400, title: 'Bad Request' })
    expect(valuesOf(answer, 'Cache-Control')).toEqual(['no-store'])
    expect({ asked, admitted, errors }).toEqual({ asked: 0, admitted: [], errors: [] })
    await expect.poll(() => records).toMatchObject([{ outcome: 'refused', status: 400, route: '/live' }])
  })

  it.each([
    { what: 'a cookie', auth: cookie, lines: ['Cookie: id=k1', 'Origin: https://a.example'] },
    { what: 'no credential, although it is optional', auth: optional(bearer), lines: [] },
  ])('without Host is refused with $what', async ({ auth, lines }) => {
    const { answer, admitted } = await upgraded(auth, '1.1', lines)
    expect({ status: answer.status, admitted }).toEqual({ status: 400, admitted: [] })
  })

  it('with one Host is accepted', async () => {
    const { answer, admitted } = await upgraded(bearer, '1.1', ['Host: a.example', good])
    expect({ status: answer.status, admitted }).toEqual({ status: 101, admitted: [{ user: 'anna' }] })
  })
})

describe('a write with a cookie', () => {
  const site = guardedApp({ '/x': cookie })
  const sent = async (...lines: ReadonlyArray<string>) => {
    const { port } = await listen(site.app)
    const { status, ran } = await sendCounted(site, port, 'POST /x', ['Cookie: id=k1', ...lines])
    return { status, ran }
  }

  it.each([
    ['two Hosts', ['Host: a.example', 'Host: b.example', 'Origin: https://a.example'], 400],
    [
      'two Hosts, and the origin of the second',
      ['Host: a.example', 'Host: b.example', 'Origin: https://b.example'],
      400,
    ],
    ['the same Host twice', ['Host: a.example', 'hOST: a.example', 'Origin: https://a.example'], 400],
    ['two Hosts, and no Origin', ['Host: a.example', 'Host: b.example'], 400],
    ['an empty Host', ['Host:', 'Origin: https://a.example'], 403],
    ['an empty Host, and Origin: null', ['Host:', 'Origin: null'], 403],
  ])('B-11 with %s is refused', async (_what, lines, status) => {
    expect(await sent(...lines)).toEqual({ status, ran: 0 })
  })

  it('with one Host comes from its own origin', async () => {
    expect(await sent('Host: a.example', 'Origin: https://a.example')).toEqual({ status: 200, ran: 1 })
  })
})
