/**
 * Makes strings safe to print on one line of a terminal. A path can contain any character, also one that moves the
 * cursor or changes the direction of writing.
 */

const unseen = /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/u

// A backslash that would look like an escape is escaped, so that two strings never look the same
const hidden = new RegExp(`${unseen.source}|${/\\(?=u\{)/.source}`, 'gu')

/** The escape of a character: `\u{7}`. */
export const escaped = (char: string): string => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`

/** Escapes every invisible character of a string. */
export const visible = (text: string): string => text.replace(hidden, escaped)

/** Whether a string contains no invisible character. */
export const isVisible = (text: string): boolean => !unseen.test(text)
