/** A client of a site: one connection that is kept open, and the cookies of one browser. */
import { Agent, type IncomingHttpHeaders } from 'node:http'
import { cookieJar } from '../servers/cookieJar.js'
import { exchange } from '../servers/server.js'

/** The response. */
export interface Reply {
  /** The status, or that nothing came within ten seconds, or that the connection broke. */
  readonly status: number | 'hang' | 'broken'
  readonly body: string
  readonly challenge: string | undefined
  readonly retryAfter: string | undefined
  readonly setCookie: ReadonlyArray<string>
  readonly milliseconds: number
}

export interface SiteClient {
  readonly send: (method: string, path: string, headers?: Readonly<Record<string, string>>) => Promise<Reply>
  /** The value of `Cookie`. */
  readonly cookies: () => string
  /** Drops the cookies, and keeps the connection. */
  readonly forget: () => void
  /** Another client with the same cookies, for another port. */
  readonly copy: (port?: number) => SiteClient
  readonly close: () => void
}

const patience = 10_000

// No answer came, or the connection broke
const without = (error: unknown) => {
  const headers: IncomingHttpHeaders = {}
  return { status: String(error).includes('no answer') ? ('hang' as const) : ('broken' as const), headers, text: '' }
}

/** A client, with the cookies of another one if they are given. */
export const siteClient = (port: number, given = ''): SiteClient => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const { cookies, header, take } = cookieJar()
  if (given !== '') take(given.split('; '))
  const send: SiteClient['send'] = async (method, path, headers = {}) => {
    const begun = performance.now()
    const sent = { ...(cookies.size > 0 && { cookie: header() }), ...headers }
    const answer = await exchange({ agent, port, method, path, headers: sent, timeout: patience }).catch(without)
    const setCookie = answer.headers['set-cookie'] ?? []
    take(setCookie)
    return {
      status: answer.status,
      body: answer.text,
      challenge: answer.headers['www-authenticate'],
      retryAfter: answer.headers['retry-after'],
      setCookie,
      milliseconds: performance.now() - begun,
    }
  }
  return {
    send,
    cookies: header,
    forget: () => cookies.clear(),
    copy: (other = port) => siteClient(other, header()),
    close: () => agent.destroy(),
  }
}
