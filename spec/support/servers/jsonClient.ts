/** A browser without a page: it keeps cookies, and sends and reads JSON. */

/** The response to a request. */
export interface JsonReply {
  readonly status: number
  /** The body as JSON; as a string if it is none. */
  readonly body: unknown
  readonly headers: Headers
}

export interface JsonClient {
  readonly send: (
    method: string,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ) => Promise<JsonReply>
  readonly get: (path: string) => Promise<JsonReply>
  readonly post: (path: string, body?: unknown) => Promise<JsonReply>
  /** The cookies by their names. */
  readonly cookies: Map<string, string>
}

const read = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** A client of a site, with the cookies of another one if it is given. */
export const jsonClient = (url: () => string, from?: JsonClient): JsonClient => {
  const cookies = new Map(from?.cookies)
  const send: JsonClient['send'] = async (method, path, body, headers = {}) => {
    const response = await fetch(url() + path, {
      method,
      redirect: 'manual',
      headers: {
        ...(cookies.size > 0 && { cookie: [...cookies].map((pair) => pair.join('=')).join('; ') }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    for (const line of response.headers.getSetCookie()) {
      const [pair = ''] = line.split(';')
      const at = pair.indexOf('=')
      const [name, value] = [pair.slice(0, at), pair.slice(at + 1)]
      if (value === '' || /expires=Thu, 01 Jan 1970/i.test(line)) cookies.delete(name)
      else cookies.set(name, value)
    }
    return { status: response.status, body: read(await response.text()), headers: response.headers }
  }
  return { send, get: (path) => send('GET', path), post: (path, body = {}) => send('POST', path, body), cookies }
}
