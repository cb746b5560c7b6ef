/**
 * A load generator that does little work: 20 connections, with one request at a time on each. All answers of a server
 * to one request have the same length. So after the first one, it counts bytes and reads only the status.
 */
import { connect, type Socket } from 'node:net'

const CONNECTIONS = 20

export interface Load {
  /** Sends this many requests over all connections. Resolves with the last response. Rejects if one is not 200. */
  readonly send: (requests: number) => Promise<void>
  /**
   * Sends a request at each of these times, in milliseconds from now, however long the answers take. Resolves with the milliseconds
   * from each of these times to its answer, so that a request that waits for a connection counts from when it was due.
   */
  readonly arrive: (due: Float64Array) => Promise<Float64Array>
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

  let answered: (socket: Socket) => void = () => {}
  let fail: (error: Error) => void = () => {}
  for (const socket of sockets) {
    let received = 0
    socket.on('error', (error) => fail(error)).on('close', () => fail(new Error('the server closed a connection')))
    socket.on('data', (chunk: Buffer) => {
      // "HTTP/1.1 2"
      if (received === 0 && chunk[9] !== 0x32) return fail(new Error(`the server answers ${chunk.toString('latin1')}`))
      received += chunk.length
      if (received < length) return
      if (received > length) return fail(new Error('an answer is longer than the first'))
      received = 0
      answered(socket)
    })
  }
  return {
    send: (requests) =>
      new Promise((resolve, reject) => {
        let [toSend, toCome] = [requests - sockets.length, requests]
        fail = reject
        answered = (socket) => {
          toCome--
          if (toSend > 0) {
            toSend--
            socket.write(request)
          } else if (toCome === 0) resolve()
        }
        for (const socket of sockets) socket.write(request)
      }),
    arrive: (due) =>
      new Promise((resolve, reject) => {
        const [free, sent] = [[...sockets], new Map<Socket, number>()]
        const took = new Float64Array(due.length)
        const begun = performance.now()
        let [next, toCome] = [0, due.length]
        // Timers of Node have milliseconds, which is longer than an answer takes
        const tick = (): void => {
          const now = performance.now() - begun
          while (next < due.length && (due[next] ?? 0) <= now) {
            const socket = free.pop()
            if (socket === undefined) break
            sent.set(socket, next++)
            socket.write(request)
          }
          if (next < due.length) setImmediate(tick)
        }
        fail = reject
        answered = (socket) => {
          const at = sent.get(socket) ?? 0
          took[at] = performance.now() - begun - (due[at] ?? 0)
          free.push(socket)
          if (--toCome === 0) resolve(took)
        }
        tick()
      }),
    close: () => {
      fail = () => {}
      for (const socket of sockets) socket.destroy()
    },
  }
}
