/** A browser without a page: it keeps cookies, and sends and reads JSON. Programs without Vitest use it, too. */

import { cookieJar } from './cookieJar.js'

export type JsonClient = ReturnType<typeof jsonClient>
export type JsonReply = Awaited<ReturnType<JsonClient['send']>>

/** The value of a JSON text, or the text if it is none. */
export const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** A client of a site, with the cookies of another one if it is given. */
export const jsonClient = (url: () => string, from?: { readonly cookies: ReadonlyMap<string, string> }) => {
  const { cookies, header, take } = cookieJar(from?.cookies)
  /** The body of the response as JSON; as a string if it is none. */
  const send = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const response = await fetch(url() + path, {
      method,
      redirect: 'manual',
      headers: {
        ...(cookies.size > 0 && { cookie: header() }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    take(response.headers.getSetCookie())
    return { status: response.status, body: parsed(await response.text()), headers: response.headers }
  }
  const post = (path: string, body: unknown = {}) => send('POST', path, body)
  return { send, get: (path: string) => send('GET', path), post, cookies }
}
