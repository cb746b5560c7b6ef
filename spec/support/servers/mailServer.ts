/** A server that takes mails by SMTP (RFC 5321), for a test of a program that sends them. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

interface MailServer {
  readonly url: string
  /** The next mail, as it was sent. */
  readonly mail: () => Promise<string>
}

/** Serves until the test ends. */
export const mailServer = async (): Promise<MailServer> => {
  const mails: string[] = []
  let arrived = (): void => {}
  const server = createServer((socket) => {
    let [lines, text]: [string, string | undefined] = ['', undefined]
    socket.on('error', () => {}).write('220 ready\r\n')
    socket.on('data', (data) => {
      lines += data.toString()
      for (let end = lines.indexOf('\r\n'); end !== -1; end = lines.indexOf('\r\n')) {
        const line = lines.slice(0, end)
        lines = lines.slice(end + 2)
        if (text !== undefined && line !== '.') text += `${line}\n`
        else if (text !== undefined) {
          mails.push(text)
          text = undefined
          arrived()
          socket.write('250 taken\r\n')
        } else if (/^data/i.test(line)) {
          text = ''
          socket.write('354 go on\r\n')
        } else if (/^quit/i.test(line)) socket.end('221 bye\r\n')
        else socket.write('250 ok\r\n')
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return {
    // Safe: it listens on a port
    url: `smtp://127.0.0.1:${(server.address() as AddressInfo).port}`,
    mail: async () => {
      if (mails.length === 0) await new Promise<void>((resolve) => (arrived = resolve))
      return mails.shift() ?? ''
    },
  }
}
