/**
 * A keyed digest of a credential. It recognizes the credential without keeping it.
 *
 * Different credentials have different digests, whatever `extract` returns, because lengths are written before
 * contents.
 */
import { createHmac } from 'node:crypto'

const written = (value: unknown): string => {
  switch (typeof value) {
    case 'string':
      return `s${value.length}:${value}`
    case 'number':
    case 'boolean':
    case 'bigint':
    case 'undefined':
      return `${typeof value}:${String(value)};`
    case 'object':
      return value === null ? 'null;' : ofObject(value)
    default:
      throw unreadable()
  }
}

const ofObject = (value: object): string => {
  if (Array.isArray(value)) return `a${value.length}:${value.map(written).join('')}`
  if (value instanceof Uint8Array) return `b${written(Buffer.from(value).toString('latin1'))}`
  // a session or a date. The `toJSON` of a Koa request or context leaves out what a hook can read
  if ('toJSON' in value && typeof value.toJSON === 'function' && !('req' in value)) {
    return `j${written(Reflect.apply(value.toJSON, value, []))}`
  }
  const prototype: unknown = Object.getPrototypeOf(value)
  // it is unknown which part of a Map, a stream or a request is the credential
  if (prototype !== Object.prototype && prototype !== null) throw unreadable()
  const entries = Object.entries(value)
  return `o${entries.length}:${entries.map(([name, one]) => written(name) + written(one)).join('')}`
}

const unreadable = (): TypeError =>
  new TypeError(
    'remembered: the credential must be a string or plain data; let extract return what was sent, as a string',
  )

// Such a value is the same for many callers, so it is not a credential
const isCredential = (sent: unknown): boolean => typeof sent !== 'boolean' && sent !== undefined && sent !== null

/** The digest of a credential of a kind. Throws a TypeError for a value that is not plain data. */
export const credentialKey = (secret: Buffer, kind: string, sent: unknown): string => {
  if (!isCredential(sent)) throw unreadable()
  // UTF-16 keeps lone surrogates apart, which UTF-8 would make one character
  return createHmac('sha256', secret)
    .update(kind + written(sent), 'utf16le')
    .digest('base64')
}
