/**
 * Sends requests as bytes over a socket, for cases that an HTTP client would hide. One character of a string is one
 * byte.
 */
import { connect } from 'node:net'

export interface RawAnswer {
  /** The status, or what happened instead. */
  readonly status: number | 'closed' | 'hang'
  /** Header lines as they were sent, with names in lower case. */
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>
  readonly body: string
  readonly milliseconds: number
}

/** Sends bytes, and reads until the server closes. Send `Connection: close`. */
export const sendRaw = (port: number, bytes: string, timeout = 15_000): Promise<RawAnswer> =>
  new Promise((resolve) => {
    const start = performance.now()
    const chunks: Buffer[] = []
    const socket = connect(port, '127.0.0.1')
    const finish = (otherwise: 'closed' | 'hang') => {
      clearTimeout(timer)
      socket.destroy()
      resolve(parse(Buffer.concat(chunks).toString('latin1'), otherwise, performance.now() - start))
    }
    const timer = setTimeout(finish, timeout, 'hang')
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.on('error', () => {})
    socket.on('close', () => finish('closed'))
    socket.on('end', () => finish('closed'))
    socket.write(Buffer.from(bytes, 'latin1'))
  })

const parse = (text: string, otherwise: 'closed' | 'hang', milliseconds: number): RawAnswer => {
  const end = text.indexOf('\r\n\r\n')
  const [line = '', ...fields] = (end === -1 ? text : text.slice(0, end)).split('\r\n')
  const status = /^HTTP\/1\.[01] (\d{3})/.exec(line)?.[1]
  return {
    status: status === undefined ? otherwise : Number(status),
    headers: fields.map((field) => {
      const colon = field.indexOf(':')
      return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()] as const
    }),
    body: end === -1 ? '' : text.slice(end + 4),
    milliseconds,
  }
}

/** All values of a header. */
export const valuesOf = (answer: RawAnswer, name: string): string[] =>
  answer.headers.filter(([n]) => n === name.toLowerCase()).map(([, value]) => value)
