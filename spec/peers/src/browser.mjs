/** A browser without scripts: cookies by host, and redirects that are followed until one leads to a URL to wait for. */
const navigation = { Accept: 'text/html', 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document' }

const MAX_REDIRECTS = 20
const TIME_LIMIT = 15_000

/** `jars`: the cookies that it has already, by host. */
export const newBrowser = (jars = new Map()) => {
  const jarOf = (url) => {
    const { host } = new URL(url)
    if (!jars.has(host)) jars.set(host, new Map())
    return jars.get(host)
  }
  const send = async (url, init = {}) => {
    const jar = jarOf(url)
    const headers = new Headers({ ...navigation, ...init.headers })
    if (jar.size > 0) headers.set('Cookie', [...jar].map(([name, value]) => `${name}=${value}`).join('; '))
    const signal = AbortSignal.timeout(TIME_LIMIT)
    const response = await fetch(url, { ...init, headers, redirect: 'manual', signal })
    const body = await response.text()
    for (const line of response.headers.getSetCookie()) {
      const [pair, ...attributes] = line.split(';')
      const name = pair.slice(0, pair.indexOf('=')).trim()
      const isOver = attributes.some((one) => /^\s*(?:expires=Thu, 01 Jan 1970|max-age=0)/i.test(one))
      if (isOver) jar.delete(name)
      else jar.set(name, pair.slice(pair.indexOf('=') + 1))
    }
    const given = response.headers.get('location')
    const location = given === null ? undefined : new URL(given, url).href
    return { status: response.status, headers: response.headers, body, given, location }
  }
  /** Follows redirects. Resolves with the URL that `until` accepts, which is not requested. */
  const follow = async (first, until) => {
    let url = first
    for (let count = 0; count < MAX_REDIRECTS; count++) {
      if (until(url)) return url
      const page = await send(url)
      if (page.location === undefined) throw new Error(`${page.status} at ${new URL(url).pathname}`)
      url = page.location
    }
    throw new Error('a redirect loop')
  }
  const cookieLength = (url) => [...jarOf(url)].map(([name, value]) => `${name}=${value}`).join('; ').length
  /** Another browser with the cookies that this one has now. */
  const copy = () => newBrowser(new Map([...jars].map(([host, jar]) => [host, new Map(jar)])))
  return { send, follow, cookieLength, copy }
}
