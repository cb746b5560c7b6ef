/** A server that takes mails by SMTP (RFC 5321), for a test of a program that sends them. */
import { createServer } from 'node:net'
import { taken } from '../runs/taken.js'
import { listening } from './server.js'

/** Serves until the test ends. */
export const mailServer = async () => {
  const mails: string[] = []
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
          socket.write('250 taken\r\n')
        } else if (/^data/i.test(line)) {
          text = ''
          socket.write('354 go on\r\n')
        } else if (/^quit/i.test(line)) socket.end('221 bye\r\n')
        else socket.write('250 ok\r\n')
      }
    })
  })
  return {
    url: `smtp://127.0.0.1:${await listening(server)}`,
    /** The next mail, as it was sent. */
    mail: () => taken(mails),
  }
}
