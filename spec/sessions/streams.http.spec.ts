/**
 * The stream in the guide "Upgrades", as it is written there: it ends with the session, even if the session ends before
 * it opens.
 */
import { once } from 'node:events'
import { request as send, type IncomingMessage } from 'node:http'
import type { RouterInstance } from '@koa/router'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { guideProgram } from '../support/papers/guidePrograms.js'
import { interruptedStore } from '../support/stores/interruptedStore.js'
import { sessionsApp } from '../support/sites/sessionsApp.js'

interface Block {
  readonly router: RouterInstance
}

let loaded: Block
beforeAll(async () => {
  loaded = await guideProgram<Block>('upgrades', 'untilEnd(ctx,')
})

/** A site with the stream of the guide at `/events`; `meanwhile` runs after the session was read. */
const site = async () => {
  const { router } = loaded
  const { store, meanwhile } = interruptedStore()
  const running = await sessionsApp(() => store, {
    below: (app) => app.use(router.routes()),
  })
  const anna = running.visitor()
  await anna.post('/login')
  const open = async () => {
    const headers = { Cookie: anna.header() }
    const outgoing = send({ port: running.port, host: '127.0.0.1', path: '/events', headers, agent: false }).end()
    onTestFinished(() => void outgoing.destroy())
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
    let isOver = false
    answer.resume().once('end', () => (isOver = true))
    return { status: answer.statusCode, isOver: () => isOver }
  }
  return { anna, meanwhile, open, signing: running.signing }
}

type Site = Awaited<ReturnType<typeof site>>

const ends: ReadonlyArray<readonly [string, (site: Site) => Promise<unknown>]> = [
  ['here', ({ anna }) => anna.copy().post('/logout')],
  ['everywhere', ({ signing }) => signing.logOutEverywhere('anna')],
]

describe('a stream', () => {
  it.each(ends)('ends when its user signs out %s', async (_how, signOut) => {
    const made = await site()
    const stream = await made.open()
    expect([stream.status, stream.isOver()]).toEqual([200, false])
    await signOut(made)
    await expect.poll(stream.isOver).toBe(true)
  })
})
