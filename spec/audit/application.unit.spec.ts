/** `audit(app)` has the rows of the command. */
import Router from '@koa/router'
import * as E from 'fp-ts/lib/Either.js'
import Koa from 'koa'
import { apiKeyCookie, authSettings, httpBearer } from 'koa-with-auth'
import { audit } from 'koa-with-auth/audit'
import { expect, it } from 'vitest'
import { auditedOf } from '../../src/command/Export.js'
import { guardOf } from '../support/models/levels.js'

const handle = (): void => {}
const bearer = httpBearer({ authenticate: () => true })
const cookie = apiKeyCookie({ paramName: 'sid', authenticate: () => true })
const make = () =>
  new Koa()
    .use(authSettings({ csrf: false }) as never)
    .use(new Router().get('/:any', guardOf(null) as never, handle).routes() as never)
    .use(
      new Router()
        .get('/x', guardOf(bearer) as never, handle)
        .post('/x', guardOf(cookie) as never, handle)
        .routes() as never,
    )

it('26.5 audit(app) reports all routers with the settings above them, as the command does', async () => {
  const app = make()
  const read = await auditedOf({ name: 'app', value: app })
  if (E.isLeft(read)) throw new Error(read.left)
  expect(JSON.stringify(audit(app))).toBe(JSON.stringify(read.right.audit))
  expect(audit(app).operations.map(({ operation, csrf }) => [operation, csrf])).toEqual([
    ['GET /:any', 'not needed'],
    ['GET /x', 'not needed'],
    ['POST /x', 'off'],
  ])
  expect(audit(app).operations[1]?.shadowedBy).toMatchObject([{ operation: 'GET /:any', access: 'public' }])
})

it('26.5 an application without a router is a TypeError', () => {
  expect(() => audit(new Koa())).toThrow(
    new TypeError('audit(app): the application mounts no router; write app.use(router.routes()) first'),
  )
})
