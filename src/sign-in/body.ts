/**
 * The body of a request: what a parser above has read, or else read here, within limits.
 */
import type { Context } from 'koa'
import { ownOrGetter } from '../core/data.js'

const MAX_LENGTH = 65_536

/** No members. */
const nothing: Readonly<Record<string, unknown>> = Object.freeze(Object.create(null) as Record<string, unknown>)

/**
 * The members of a JSON object, or the fields of a form; without a prototype. A field that was sent twice is an array,
 * which no kind takes. Another body, or none, has no members. Throws an HTTP error 413 above 64 kB, and 400 for what is
 * no JSON.
 */
export const bodyOf = async (ctx: Context): Promise<Readonly<Record<string, unknown>>> => {
  if (ctx.method === 'GET' || ctx.method === 'HEAD') return nothing
  const parsed = ownOrGetter(ctx.request, 'body')
  if (parsed !== undefined) return membersOf(parsed)
  const isJson = ctx.is('json', '+json')
  if (isJson === false && ctx.is('urlencoded') === false) return nothing
  const text = await textOf(ctx)
  if (isJson === false) return fieldsOf(new URLSearchParams(text))
  if (text === '') return nothing
  try {
    return membersOf(JSON.parse(text))
  } catch {
    return ctx.throw(400)
  }
}

const membersOf = (u: unknown): Readonly<Record<string, unknown>> =>
  typeof u === 'object' && u !== null && !Array.isArray(u)
    ? // Safe: an object without a prototype gets the members
      Object.assign(Object.create(null) as Record<string, unknown>, u)
    : nothing

const fieldsOf = (form: URLSearchParams): Readonly<Record<string, unknown>> => {
  // Safe: an object without a prototype has no members yet
  const fields = Object.create(null) as Record<string, unknown>
  for (const name of new Set(form.keys())) {
    const values = form.getAll(name)
    fields[name] = values.length === 1 ? values[0] : values
  }
  return fields
}

const textOf = async (ctx: Context): Promise<string> => {
  const chunks: Buffer[] = []
  let length = 0
  if (Number(ctx.get('Content-Length')) > MAX_LENGTH) return ctx.throw(413)
  for await (const chunk of ctx.req) {
    const bytes = Buffer.from(chunk as Uint8Array)
    length += bytes.length
    if (length > MAX_LENGTH) return ctx.throw(413)
    chunks.push(bytes)
  }
  return Buffer.concat(chunks).toString()
}
