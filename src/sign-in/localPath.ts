/**
 * The path that follows a ceremony.
 */

const MAX_PATH = 2000

/**
 * A path of this origin for every parser of URLs; `/` for anything else. A good path is returned as it is.
 *
 * @example
 * import { localPath } from 'koa-with-auth/sign-in'
 *
 * assert.strictEqual(localPath('/basket?page=2'), '/basket?page=2')
 * assert.strictEqual(localPath('//evil.example'), '/')
 */
export const localPath = (given: unknown): string => {
  if (typeof given !== 'string' || given.length > MAX_PATH) return '/'
  // printable ASCII without a blank and a backslash, which some parsers read as a slash
  if (!/^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/.test(given)) return '/'
  const [path = ''] = given.split(/[?#]/)
  if (/%(?:2f|5c|[01][0-9a-f]|7f)/i.test(path)) return '/'
  const base = 'https://local.invalid'
  const { origin, pathname } = new URL(given, base)
  // `/.//host` is resolved to `//host`
  return origin === base && !pathname.startsWith('//') ? given : '/'
}
