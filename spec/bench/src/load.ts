/**
 * A load generator that does little work: 20 connections, with one request at a time on each. All answers of a server
 * to one request have the same length. So after the first one, it counts bytes and reads only the status.
 */
import { connect, type Socket } from 'node:net'

const CONNECTIONS = 20

export interface Load {
  /** Sends this many requests over all connections. Resolves with the last response. Rejects if one is not 200. */
  readonly send: (requests: number) => Promise<void>
  readonly close: () => void
}

// The length of a whole response; `undefined` until it is known
const lengthOf = (answer: Buffer): number | undefined => {
  const head = answer.indexOf('\r\n\r\n')
  if (head < 0) return undefined
  const fields = answer.toString('latin1', 0, head)
  const length = /\r\ncontent-length: *(\d+)/i.exec(fields)?.[1]
  if (length !== undefined) {
    const whole = head + 4 + Number(length)
    return answer.length < whole ? undefined : whole
  }
  return answer.toString('latin1').endsWith('0\r\n\r\n') ? answer.length : undefined
}

const opened = (port: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket.setNoDelay()))
    socket.once('error', reject)
  })

const first = (socket: Socket, request: Buffer): Promise<number> =>
  new Promise((resolve, reject) => {
    let answer = Buffer.alloc(0)
    const listen = (chunk: Buffer): void => {
      answer = Buffer.concat([answer, chunk])
      const length = lengthOf(answer)
      if (length === undefined) return
      socket.off('data', listen)
      if (answer.toString('latin1', 9, 12) === '200' && answer.length === length) resolve(length)
      else reject(new Error(`the server answers ${answer.toString('latin1')}`))
    }
    socket.on('data', listen)
    socket.write(request)
  })

/** Connects to a server on the loopback interface. */
export const load = async (port: number, headers: Readonly<Record<string, string>>): Promise<Load> => {
  const fields = Object.entries({ Host: `127.0.0.1:${port}`, Connection: 'keep-alive', ...headers })
  const request = Buffer.from(
    `GET /x HTTP/1.1\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`,
  )
  const sockets = await Promise.all(Array.from({ length: CONNECTIONS }, () => opened(port)))
  const lengths = await Promise.all(sockets.map((socket) => first(socket, request)))
  const length = lengths[0] ?? 0
  if (lengths.some((one) => one !== length)) throw new Error('answers differ in length')

  let [toSend, toCome] = [0, 0]
  let done: { readonly resolve: () => void; readonly reject: (error: Error) => void } | undefined
  const fail = (error: Error): void => done?.reject(error)
  for (const socket of sockets) {
    let received = 0
    socket.on('error', fail).on('close', () => fail(new Error('the server closed a connection')))
    socket.on('data', (chunk: Buffer) => {
      // "HTTP/1.1 2"
      if (received === 0 && chunk[9] !== 0x32) return fail(new Error(`the server answers ${chunk.toString('latin1')}`))
      received += chunk.length
      if (received < length) return
      if (received > length) return fail(new Error('an answer is longer than the first'))
      received = 0
      toCome--
      if (toSend > 0) {
        toSend--
        socket.write(request)
      } else if (toCome === 0) done?.resolve()
    })
  }
  return {
    send: (requests) =>
      new Promise((resolve, reject) => {
        done = { resolve, reject }
        toCome = requests
        toSend = requests - sockets.length
        for (const socket of sockets) socket.write(request)
      }),
    close: () => {
      done = undefined
      for (const socket of sockets) socket.destroy()
    },
  }
}
