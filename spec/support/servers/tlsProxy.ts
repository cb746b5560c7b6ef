/** A proxy that ends TLS on loopback, as one in front of a site does. It runs until the test has finished. */
import { request } from 'node:http'
import { createServer } from 'node:https'
import { missingProgram } from '../projects/programs.js'
import { certificates } from './certificates.js'
import { listening } from './server.js'

/** What is missing, or `undefined`. If `CI` is set, it is an error. */
export const missingTls = (): string | undefined => missingProgram(['openssl'], process.env)

/**
 * Starts it. `port` is that of the site, which is asked when a request comes. The fields that a client sends about the
 * host are handed on, as careless proxies do; `X-Forwarded-Proto` is the proxy's.
 */
export const tlsProxy = async (port: () => number): Promise<{ readonly origin: string }> => {
  const server = createServer(certificates().server, (req, res) => {
    const headers = { ...req.headers, 'x-forwarded-proto': 'https' }
    const onward = request(
      { host: '127.0.0.1', port: port(), path: req.url, method: req.method, headers },
      (answer) => {
        res.writeHead(answer.statusCode ?? 502, answer.rawHeaders)
        answer.pipe(res)
      },
    )
    onward.on('error', () => res.destroy())
    req.pipe(onward)
  })
  return { origin: `https://localhost:${await listening(server)}` }
}
