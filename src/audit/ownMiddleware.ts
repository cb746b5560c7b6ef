/**
 * How this package's own middleware is known, so that nobody has to list it: settings answer exceptions as they were told
 * to, `operation(...)` only describes.
 */

const settings = Symbol.for('koa-with-auth/settings')
const description = Symbol.for('koa-with-auth/operation')

/** Whether a function is what `authSettings` made, or the settings of `apiApp`. */
export const isSettings = (f: Function): boolean => settings in f

/** Whether a function is what `operation` made: it goes on, whatever the request. */
export const isDescription = (f: Function): boolean => description in f
