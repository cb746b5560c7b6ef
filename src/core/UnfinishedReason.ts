/** Why a sign-in was not finished, and the answer for each reason. */

/** For each reason of an unfinished sign-in: its failure, and the status that answers it. */
export const unfinishedReasons = {
  unknown: { failure: 'invalid', status: 400 },
  late: { failure: 'expired', status: 400 },
  declined: { failure: 'invalid', status: 400 },
  provider: { failure: 'invalid', status: 400 },
  malformed: { failure: 'invalid', status: 400 },
  weak: { failure: 'invalid', status: 400 },
  short: { failure: 'invalid', status: 400 },
  long: { failure: 'invalid', status: 400 },
  common: { failure: 'invalid', status: 400 },
  context: { failure: 'invalid', status: 400 },
  breached: { failure: 'invalid', status: 400 },
  wrong: { failure: 'invalid', status: 403 },
  anotherUser: { failure: 'insufficient', status: 403 },
  anotherBrowser: { failure: 'insufficient', status: 403 },
  noAccount: { failure: 'insufficient', status: 403 },
} as const satisfies Readonly<Record<string, { failure: 'invalid' | 'expired' | 'insufficient'; status: 400 | 403 }>>

/**
 * Why a sign-in was not finished (`koa-with-auth/sign-in`).
 *
 * | reason           | meaning                                                               | status |
 * |------------------|-----------------------------------------------------------------------|--------|
 * | `unknown`        | the handle is unknown, forged, of another browser, or was used already | 400    |
 * | `late`           | it was begun too long ago                                             | 400    |
 * | `declined`       | the user cancelled it                                                 | 400    |
 * | `provider`       | the answer of the provider is wrong                                   | 400    |
 * | `malformed`      | the body has not the fields that are needed                           | 400    |
 * | `weak`           | the new password is not good enough; nothing was used up              | 400    |
 * | `short`, `long`, `common`, `context`, `breached` | why it is not, as `newPassword` says it        | 400    |
 * | `wrong`          | the code, or the name and the password, is wrong                      | 403    |
 * | `anotherUser`    | another user began it, or it proves another user                      | 403    |
 * | `anotherBrowser` | it was begun in another browser                                       | 403    |
 * | `noAccount`      | the application signs in no user for this proof                       | 403    |
 */
export type UnfinishedReason = keyof typeof unfinishedReasons
