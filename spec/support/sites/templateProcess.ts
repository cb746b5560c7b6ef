/** A process of the template "site" gets a real SIGTERM while it answers. */
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { expect } from 'vitest'
import { start } from '../papers/examplesProcess.js'
import { freePort } from '../servers/redisServer.js'

const isOpen = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    const end = (is: boolean) => () => {
      socket.destroy()
      resolve(is)
    }
    socket.once('connect', end(true)).once('error', end(false))
  })

/** Expects that it completes the request that it has begun, takes no other, and ends with 0. */
export const expectGracefulEnd = async (folder: string, program: string, env: Record<string, string>) => {
  const port = await freePort()
  const running = start(folder, process.execPath, [program], { ...env, PORT: String(port) })
  try {
    await running.printed('The site is at')
    const body = new URLSearchParams({ email: 'anna@example.com', password: 'four words of some length' }).toString()
    const headers = {
      'Content-Type': 'application/x-www-form-urlencoded',
      'Content-Length': body.length,
      Expect: '100-continue',
    }
    const sent = request({ port, host: '127.0.0.1', method: 'POST', path: '/sign-in', headers })
    sent.flushHeaders()
    // Safe: the event of a response
    const answered = once(sent, 'response') as Promise<[IncomingMessage]>
    answered.catch(() => {})
    // the process has the request, and waits for its body
    await once(sent, 'continue')
    running.signal('SIGTERM')
    await expect.poll(() => isOpen(port)).toBe(false)
    sent.end(body)
    const [response] = await answered
    response.resume()
    await once(response, 'end')
    expect(response.statusCode).toBe(403)
    expect(await running.exited).toBe(0)
  } finally {
    running.signal('SIGKILL')
  }
}
