/**
 * The state of a Koa response before authentication, so that changes by a hook can be undone.
 *
 * Authenticators must not write the response, but a hook can: a status, a header, or the cookie with which koa-session
 * expires a bad signature. This relies on three private fields of Koa's response, which a test pins.
 */
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Response } from 'koa'

interface Internals {
  _body?: unknown
  _explicitStatus?: boolean
  _explicitNullBody?: boolean
}

/** The state of a response. */
export interface ResponseSnapshot {
  readonly status: number
  readonly statusMessage: string | undefined
  readonly body: unknown
  readonly explicitStatus: boolean | undefined
  readonly explicitNullBody: boolean | undefined
  readonly headers: OutgoingHttpHeaders | undefined
}

// Safe: Koa's response keeps these three on itself (koa 3.3, lib/response.js)
const internalsOf = (response: Response): Internals => response as unknown as Internals

// The state in which Koa begins, and in which most requests reach a guard
const untouched: ResponseSnapshot = {
  status: 404,
  statusMessage: undefined,
  body: undefined,
  explicitStatus: undefined,
  explicitNullBody: undefined,
  headers: undefined,
}

// Koa sets a status with every body, so the body need not be checked
const isUntouched = (response: Response): boolean =>
  internalsOf(response)._explicitStatus === undefined &&
  response.res.statusCode === 404 &&
  response.res.statusMessage === undefined &&
  response.res.getHeaderNames().length === 0

/** Takes the state of a response. */
export const take = (response: Response): ResponseSnapshot => {
  if (isUntouched(response)) return untouched
  const { res } = response
  const { _body: body, _explicitStatus: explicitStatus, _explicitNullBody: explicitNullBody } = internalsOf(response)
  const { statusCode: status, statusMessage } = res
  return { status, statusMessage, body, explicitStatus, explicitNullBody, headers: copied(res.getHeaders()) }
}

// Arrays are copied, because adding a cookie changes the array in place
const copied = (headers: OutgoingHttpHeaders): OutgoingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? [...value] : value]))

/** Restores the state of a response, unless its head was sent. */
export const restore = (response: Response, before: ResponseSnapshot): void => {
  if (before === untouched && isUntouched(response)) return
  const { res } = response
  if (res.headersSent) return
  res.statusCode = before.status
  Object.assign(res, { statusMessage: before.statusMessage })
  Object.assign(internalsOf(response), {
    _body: before.body,
    _explicitStatus: before.explicitStatus,
    _explicitNullBody: before.explicitNullBody,
  })
  restoreHeaders(res, before.headers)
}

const restoreHeaders = (res: ServerResponse, before: ResponseSnapshot['headers']): void => {
  for (const name of res.getHeaderNames()) if (before?.[name] === undefined) res.removeHeader(name)
  if (before === undefined) return
  for (const name of Object.keys(before)) {
    const value = before[name]
    if (value !== undefined && res.getHeader(name) !== value) res.setHeader(name, value)
  }
}
