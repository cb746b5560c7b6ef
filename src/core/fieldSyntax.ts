/** The syntax of names and quoted values in HTTP fields. */

/** RFC 9110 §5.6.2: the names of schemes, parameters, fields and cookies. */
export const token: RegExp = /^[A-Za-z0-9!#$%&'*+\-.^_`|~]+$/

/** RFC 9110 §5.6.4: whether it can be a parameter's value, in ASCII. */
export const isQuotable = (u: unknown): u is string => typeof u === 'string' && /^[\t\x20-\x7e]*$/.test(u)
