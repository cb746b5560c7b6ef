/** Authorities and certificates, made by openssl for the time of a suite, and a server and clients that use them. */
import { execFileSync } from 'node:child_process'
import { createHash, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { createServer, request, type RequestOptions, type ServerOptions } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { TLSSocket } from 'node:tls'
import type Koa from 'koa'
import { listening } from './server.js'

export interface Pair {
  readonly key: string
  readonly cert: string
  readonly x509: X509Certificate
  /** The SHA-256 of the certificate, as tokens have it (RFC 8705 §3.1). */
  readonly thumbprint: string
}

const openssl = (folder: string, ...given: ReadonlyArray<string>) =>
  execFileSync('openssl', given, { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] })

let made: ReturnType<typeof make> | undefined

const make = () => {
  const folder = mkdtempSync(join(tmpdir(), 'certificates-'))
  const read = (name: string): Pair => {
    const [key, cert] = ['key', 'crt'].map((end) => readFileSync(join(folder, `${name}.${end}`), 'utf8'))
    const x509 = new X509Certificate(cert ?? '')
    const thumbprint = createHash('sha256').update(x509.raw).digest('base64url')
    return { key: key ?? '', cert: cert ?? '', x509, thumbprint }
  }
  const newKey = (name: string, subject: string, ...more: ReadonlyArray<string>) => {
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', `${name}.key`]
    openssl(folder, 'req', ...curve, '-subj', subject, '-out', ...more)
  }
  const authority = (name: string, subject: string): Pair => {
    newKey(name, subject, `${name}.crt`, '-x509', '-days', '30', '-addext', 'keyUsage=critical,keyCertSign,cRLSign')
    return read(name)
  }
  const issued = (name: string, subject: string, by: string, extensions: string): Pair => {
    newKey(name, subject, `${name}.csr`)
    writeFileSync(join(folder, `${name}.ext`), extensions)
    const signer = ['-CA', `${by}.crt`, '-CAkey', `${by}.key`, '-CAcreateserial', '-days', '3']
    openssl(folder, 'x509', '-req', '-in', `${name}.csr`, ...signer, '-extfile', `${name}.ext`, '-out', `${name}.crt`)
    return read(name)
  }
  try {
    const forClients = 'extendedKeyUsage=clientAuth\nsubjectAltName=DNS:billing.example'
    const ca = authority('ca', '/O=Acme/CN=Acme CA')
    const other = authority('other', '/O=Evil/CN=Evil CA')
    authority('namesake', '/O=Acme/CN=Acme CA')
    const again = (subject: string, days: string): string =>
      openssl(folder, 'req', '-x509', '-new', '-key', 'ca.key', '-days', days, '-subj', subject).toString()
    newKey('self', '/CN=self', 'self.crt', '-x509', '-days', '1', '-addext', 'basicConstraints=CA:FALSE')
    return {
      /** The authority that the server trusts. */
      authority: ca,
      server: issued('server', '/CN=localhost', 'ca', 'subjectAltName=DNS:localhost,IP:127.0.0.1'),
      /** For three days. */
      client: issued('client', '/O=Acme/CN=billing', 'ca', forClients),
      forAnyUse: issued('forAnyUse', '/O=Acme/CN=billing', 'ca', 'extendedKeyUsage=serverAuth,anyExtendedKeyUsage'),
      forServers: issued('forServers', '/CN=www', 'ca', 'extendedKeyUsage=serverAuth'),
      otherAuthority: other,
      stranger: issued('stranger', '/O=Acme/CN=billing', 'other', forClients),
      /** Of an authority whose name is that of the first, with another key. */
      impostor: issued('impostor', '/O=Acme/CN=billing', 'namesake', `${forClients}\nauthorityKeyIdentifier=none`),
      /** Of an authority that has the key of the first, and another name. */
      renamed: again('/O=Acme/CN=Another CA', '30'),
      /** Of the first authority, for one day. */
      brief: again('/O=Acme/CN=Acme CA', '1'),
      selfSigned: read('self'),
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The certificates of all suites of a process. */
export const certificates = () => (made ??= make())

/** Serves an application by https until the test has finished. */
export const listenByTls = async (app: Koa, options: ServerOptions = {}) => {
  const { server: own, authority } = certificates()
  const tls = { key: own.key, cert: own.cert, ca: authority.cert, requestCert: true, rejectUnauthorized: false }
  const serve = app.callback()
  const server = createServer({ ...tls, ...options }, (req, res) => void serve(req, res))
  const port = await listening(server)
  /** `isReused`: whether the TLS session of an earlier connection was continued. `session` is there to continue it. */
  const send = async (given: RequestOptions = {}) => {
    const path = { host: '127.0.0.1', port, path: '/me', ca: authority.cert, agent: false as const }
    // Safe: the event of a response
    const [res] = (await once(request({ ...path, ...given }).end(), 'response')) as [IncomingMessage]
    const socket = res.socket as TLSSocket
    let session: Buffer | undefined
    socket.on('session', (one: Buffer) => (session = one))
    const isReused = socket.isSessionReused()
    const { statusCode: status = 0, headers } = res
    const body = await text(res)
    return { status, headers, text: body, isReused, session: session ?? socket.getSession() }
  }
  return { url: `https://127.0.0.1:${port}`, send }
}
