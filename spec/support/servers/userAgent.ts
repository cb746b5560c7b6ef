/** A browser without scripts: cookies by host, redirects that are followed until a URL that the test waits for. */
import { cookieJar } from './cookieJar.js'
import { exchange as exchanged } from './server.js'

/** The response, whose body has been read. */
export interface Page {
  readonly status: number
  readonly url: string
  readonly headers: Headers
  readonly location: string | undefined
  readonly setCookie: ReadonlyArray<string>
  readonly body: string
  /** The URLs that were requested, in order. */
  readonly way: ReadonlyArray<string>
}

export interface UserAgent {
  /** One request. No redirect is followed. */
  readonly send: (url: string, init?: RequestInit) => Promise<Page>
  /** A navigation: redirects are followed, until one leads to a URL that `until` accepts. It is not requested. */
  readonly open: (url: string, until?: (url: string) => boolean) => Promise<Page & { readonly stopped: string }>
  /** The cookies for a host, with its port. */
  readonly cookies: (host: string) => ReadonlyMap<string, string>
  /** Another browser with the same cookies. */
  readonly copy: () => UserAgent
}

const MAX_REDIRECTS = 20

/** What a browser sends with a navigation that another site caused. */
export const navigation = {
  Accept: 'text/html,application/xhtml+xml',
  'Sec-Fetch-Mode': 'navigate',
  'Sec-Fetch-Dest': 'document',
  'Sec-Fetch-Site': 'cross-site',
} as const

// Not by `fetch`, which sends a Sec-Fetch-Mode of its own
const exchange = async (url: string, { method = 'GET', body }: RequestInit, headers: Headers) => {
  if (body instanceof URLSearchParams && !headers.has('Content-Type')) {
    headers.set('Content-Type', 'application/x-www-form-urlencoded')
  }
  const { hostname: host, port, pathname, search, protocol } = new URL(url)
  const to = { host, port, path: pathname + search, method, headers: Object.fromEntries(headers) }
  // the certificate of a test is its own
  const options = protocol === 'https:' ? { ...to, rejectUnauthorized: false } : to
  // Safe: what is no form is a string here
  const sent = (body instanceof URLSearchParams ? body.toString() : body) as string | undefined
  const { status, rawHeaders, text } = await exchanged(options, sent)
  const received = new Headers()
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) received.append(rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '')
  return { status, headers: received, body: text }
}

export const userAgent = (kept: ReadonlyMap<string, ReturnType<typeof cookieJar>> = new Map()): UserAgent => {
  const jars = new Map([...kept].map(([host, { cookies }]) => [host, cookieJar(cookies)]))
  const jarOf = (host: string) => {
    const jar = jars.get(host) ?? cookieJar()
    jars.set(host, jar)
    return jar
  }
  const send: UserAgent['send'] = async (url, init = {}) => {
    const jar = jarOf(new URL(url).host)
    const headers = new Headers(init.headers)
    if (jar.cookies.size > 0 && !headers.has('Cookie')) headers.set('Cookie', jar.header())
    const response = await exchange(url, init, headers)
    const setCookie = response.headers.getSetCookie()
    jar.take(setCookie)
    const location = response.headers.get('location')
    return {
      status: response.status,
      url,
      headers: response.headers,
      location: location === null ? undefined : new URL(location, url).href,
      setCookie,
      body: response.body,
      way: [url],
    }
  }
  const open: UserAgent['open'] = async (first, until = () => false) => {
    const way: string[] = []
    let page = await send(first, { headers: navigation })
    way.push(first)
    for (let count = 0; page.location !== undefined && page.status >= 300 && page.status < 400; count++) {
      if (count === MAX_REDIRECTS) throw new Error(`a redirect loop: ${way.join(' ')}`)
      if (until(page.location)) return { ...page, way, stopped: page.location }
      way.push(page.location)
      page = await send(page.location, { headers: navigation })
    }
    return { ...page, way, stopped: page.url }
  }
  return { send, open, cookies: (host) => jarOf(host).cookies, copy: () => userAgent(jars) }
}
