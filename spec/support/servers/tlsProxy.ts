/** A proxy that ends TLS on loopback, as one in front of a site does. It runs until the test has finished. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { createServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { missingProgram } from '../projects/programs.js'
import { listening } from './server.js'

/** What is missing, or `undefined`. If `CI` is set, it is an error. */
export const missingTls = (): string | undefined => missingProgram(['openssl'], process.env)

/** A certificate that no authority has signed. */
export const ownCertificate = (): { readonly key: Buffer; readonly cert: Buffer } => {
  const folder = mkdtempSync(join(tmpdir(), 'koa-with-auth-tls-'))
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const algorithm = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  try {
    execFileSync(
      'openssl',
      ['req', '-x509', ...algorithm, '-days', '1', '-subj', '/CN=localhost', '-keyout', key, '-out', cert],
      { stdio: 'ignore' },
    )
    return { key: readFileSync(key), cert: readFileSync(cert) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * Starts it. `port` is that of the site, which is asked when a request comes. The fields that a client sends about the
 * host are handed on, as careless proxies do; `X-Forwarded-Proto` is the proxy's.
 */
export const tlsProxy = async (port: () => number): Promise<{ readonly origin: string }> => {
  const server = createServer(ownCertificate(), (req, res) => {
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
