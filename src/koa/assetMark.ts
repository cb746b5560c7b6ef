/**
 * How what a page loads is told from other operations: it is as open as the page, whose path stands in front of its name.
 */

const mark = Symbol.for('koa-with-auth/asset')

/** Marks a handler as one that serves a part of the page one path segment above. */
export const markAsset = <F extends Function>(handler: F): F => Object.assign(handler, { [mark]: true })

/** Whether a function serves a part of a page. */
export const isAsset = (f: Function): boolean => mark in f
