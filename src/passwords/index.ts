/** koa-with-auth/passwords: strong password hashes, which are verified without blocking the event loop, and whether a new password will do. */
export { hash, needsRehash, verify } from './passwords.js'
export { newPassword } from './newPassword.js'
export type { NewPassword, NewPasswordOptions, PasswordReason, PasswordUser } from './newPassword.js'
