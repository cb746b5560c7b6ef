/** Objects of upgrades: the caller of the guard passes the parameters, because no router reads the path. */
import { pipe } from 'fp-ts/lib/function.js'
import Koa from 'koa'
import { httpBearer, owned } from 'koa-with-auth'
import { mockRequest } from 'koa-with-auth/testing'
import { guardRequest, guardUpgrade, type UpgradeGuard } from 'koa-with-auth/upgrades'
import { describe, expect, it, onTestFinished } from 'vitest'
import { listenWithUpgrades, sendUpgrade } from '../support/servers/upgradeServer.js'

interface User {
  readonly name: string
}
const rooms = new Map([
  ['r1', { owner: 'anna' }],
  ['r2', { owner: 'bert' }],
])
const user = httpBearer({ authenticate: (_request, token): User | false => token !== 'wrong' && { name: token } })
const as = (name: string) => [`Authorization: Bearer ${name}`]

const comparable = ({ status, headers, body }: Awaited<ReturnType<typeof sendUpgrade>>) => [
  status,
  JSON.stringify(headers).replace(/"date",\s*"[^"]*"|"date":\s*"[^"]*"/gi, ''),
  body,
]

const served = async (parametersOf: (url: string) => Readonly<Record<string, string>> | undefined) => {
  const asked: string[] = []
  const room = owned('room', {
    param: 'room',
    find: (id, _one: User) => {
      asked.push(id)
      return rooms.get(id)
    },
    allow: ({ owner }, one) => owner === one.name,
  })
  const app = new Koa()
  const guard = guardUpgrade(app, pipe(user, room))
  const objects: unknown[] = []
  const passing: UpgradeGuard<unknown> = async (request, socket, head) => {
    const admitted = await guard(request, socket, head, parametersOf(request.url ?? ''))
    if (admitted !== undefined) objects.push({ ...admitted.objects })
    return admitted
  }
  const server = await listenWithUpgrades(app, () => passing)
  onTestFinished(server.close)
  return { ...server, asked, objects }
}

describe('guardUpgrade with owned', () => {
  const room = (url: string) => ({ room: url.slice(1) })

  it('admits with the object, and refuses what is not there and what is not for the caller alike', async () => {
    const { port, asked, objects } = await served(room)
    expect((await sendUpgrade(port, 'GET /r1', as('anna'))).status).toBe(101)
    expect(objects).toStrictEqual([{ room: rooms.get('r1') }])
    const foreign = await sendUpgrade(port, 'GET /r2', as('anna'))
    const unknown = await sendUpgrade(port, 'GET /r3', as('anna'))
    expect(foreign.status).toBe(404)
    expect(comparable(foreign)).toStrictEqual(comparable(unknown))
    expect(asked).toStrictEqual(['r1', 'r2', 'r3'])
  })

  it('looks nothing up for an anonymous caller', async () => {
    const { port, asked } = await served(room)
    expect((await sendUpgrade(port, 'GET /r1')).status).toBe(401)
    expect(asked).toHaveLength(0)
  })

  it('is a 500 if the caller of the guard passes no parameters, and a 404 without this one', async () => {
    expect((await sendUpgrade((await served(() => undefined)).port, 'GET /r1', as('anna'))).status).toBe(500)
    expect((await sendUpgrade((await served(() => ({}))).port, 'GET /r1', as('anna'))).status).toBe(404)
  })

  it('takes the parameters of a request from the caller of guardRequest, and is a 500 without them', async () => {
    const found = owned('found', { param: 'id', find: (id: string) => id })
    const app = new Koa()
    app.silent = true
    const guard = guardRequest(app, pipe(user, found))
    const { req } = mockRequest({ fields: [['Host', 'a'], ['Authorization', 'Bearer anna']] }) // prettier-ignore
    expect(await guard(req, { id: 'r1', more: ['x'] })).toMatchObject({ objects: { found: 'r1' } })
    expect((await guard(req, { id: '' })).refused?.status).toBe(404)
    expect((await guard(req)).refused?.status).toBe(500)
  })
})
