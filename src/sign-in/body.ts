/**
 * The body of a request: what a parser above has read, or else read here, within limits.
 */
import type { IncomingMessage } from 'node:http'
import { finished } from 'node:stream'
import type { Context } from 'koa'
import { ownOrGetter } from '../core/data.js'

const MAX_LENGTH = 65_536

type Members = Readonly<Record<string, unknown>>

/** No members. */
const nothing: Members = Object.freeze(Object.create(null) as Record<string, unknown>)

/**
 * The members of a JSON object, or the fields of a form; without a prototype. A field that was sent twice is an array,
 * which no kind takes. Another body, or none, has no members. Throws an HTTP error 413 above 64 kB, and 400 for what is
 * no JSON.
 */
export const bodyOf = async (ctx: Context): Promise<Members> => {
  const body = await readBody(ctx)
  return typeof body === 'number' ? ctx.throw(body) : body
}

/** The same for an answer. One that cannot be read has no members: it is refused like any other that is wrong. */
export const answerOf = async (ctx: Context): Promise<Members> => {
  const body = await readBody(ctx)
  return typeof body === 'number' ? nothing : body
}

// The status if it cannot be read
const readBody = async (ctx: Context): Promise<Members | 400 | 413> => {
  if (ctx.method === 'GET' || ctx.method === 'HEAD') return nothing
  const parsed = ownOrGetter(ctx.request, 'body')
  if (parsed !== undefined) return membersOf(parsed)
  const isJson = ctx.is('json', '+json')
  if (isJson === false && ctx.is('urlencoded') === false) return nothing
  const text = Number(ctx.get('Content-Length')) > MAX_LENGTH ? undefined : await textOf(ctx.req)
  if (text === undefined) return 413
  if (isJson === false) return fieldsOf(new URLSearchParams(text))
  if (text === '') return nothing
  try {
    return membersOf(JSON.parse(text))
  } catch {
    return 400
  }
}

const membersOf = (u: unknown): Members =>
  typeof u === 'object' && u !== null && !Array.isArray(u)
    ? // Safe: an object without a prototype gets the members
      Object.assign(Object.create(null) as Record<string, unknown>, u)
    : nothing

const fieldsOf = (form: URLSearchParams): Members => {
  // Safe: an object without a prototype has no members yet
  const fields = Object.create(null) as Record<string, unknown>
  for (const name of new Set(form.keys())) {
    const values = form.getAll(name)
    fields[name] = values.length === 1 ? values[0] : values
  }
  return fields
}

// `undefined` for one that is too long. Its rest is received and thrown away, because a response on a connection that was cut
// off does not arrive
const textOf = (request: IncomingMessage): Promise<string | undefined> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0
    request.on('data', (chunk: Buffer | string) => {
      const bytes = Buffer.from(chunk)
      length += bytes.length
      if (length <= MAX_LENGTH) chunks.push(bytes)
      else resolve(undefined)
    })
    // also for one that somebody else has read to its end
    finished(request, { writable: false }, (error) =>
      error ? reject(error) : resolve(Buffer.concat(chunks).toString()),
    )
  })
