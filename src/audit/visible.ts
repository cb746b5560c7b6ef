/**
 * Strings on one line, as a reader and a terminal can be given them: a path can hold any character, also one that moves the
 * cursor or turns the direction of writing.
 */

const unseen = /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/u

// A backslash that would read as an escape is escaped, so that two strings never look the same
const hidden = new RegExp(`${unseen.source}|${/\\(?=u\{)/.source}`, 'gu')

/** The escape of a character: `\u{7}`. */
export const escaped = (char: string): string => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`

/** A string with every character that cannot be seen escaped. */
export const visible = (text: string): string => text.replace(hidden, escaped)

/** Whether a string holds no character that cannot be seen. */
export const isVisible = (text: string): boolean => !unseen.test(text)
