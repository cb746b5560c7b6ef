/** A client of a site: one connection that is kept open, and the cookies of one browser. */
import { Agent, request } from 'node:http'

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

/** A client, with the cookies of another one if they are given. */
export const siteClient = (port: number, cookies = ''): SiteClient => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const jar = new Map(cookies === '' ? [] : cookies.split('; ').map((one) => split(one)))
  const header = (): string => [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
  const take = (line: string): void => {
    const [name, value] = split(line.split(';')[0] ?? '')
    if (value === '' || /expires=Thu, 01 Jan 1970/.test(line)) jar.delete(name)
    else jar.set(name, value)
  }
  const send: SiteClient['send'] = (method, path, headers = {}) =>
    new Promise((resolve) => {
      const begun = performance.now()
      const ended = (status: Reply['status'], rest: Partial<Reply> = {}): void =>
        resolve({
          status,
          body: '',
          challenge: undefined,
          retryAfter: undefined,
          setCookie: [],
          ...rest,
          milliseconds: performance.now() - begun,
        })
      const cookie = header()
      const sent = request({
        agent,
        port,
        host: '127.0.0.1',
        method,
        path,
        headers: { ...(cookie !== '' && { cookie }), ...headers },
      })
      sent.setTimeout(patience, () => {
        ended('hang')
        sent.destroy()
      })
      sent.on('error', () => ended('broken'))
      sent.on('response', (response) => {
        let body = ''
        const setCookie = response.headers['set-cookie'] ?? []
        setCookie.forEach(take)
        response.setEncoding('utf8').on('data', (chunk: string) => (body += chunk))
        response.on('error', () => ended('broken'))
        response.on('end', () =>
          ended(response.statusCode ?? 0, {
            body,
            setCookie,
            challenge: response.headers['www-authenticate'],
            retryAfter: response.headers['retry-after'],
          }),
        )
      })
      sent.end()
    })
  return {
    send,
    cookies: header,
    forget: () => jar.clear(),
    copy: (other = port) => siteClient(other, header()),
    close: () => agent.destroy(),
  }
}

const split = (pair: string): [name: string, value: string] => {
  const at = pair.indexOf('=')
  return [pair.slice(0, at), pair.slice(at + 1)]
}
