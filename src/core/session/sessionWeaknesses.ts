/**
 * The weaknesses of a koa-session that was set up by hand, each with its fix (D-S3, D-S7, D-S12).
 */
import { isAsync } from '../hooks.js'

interface Rule {
  readonly when: (options: Readonly<Record<string, unknown>>, isProduction: boolean) => boolean
  readonly warning: string
}

const rules: ReadonlyArray<Rule> = [
  {
    when: ({ store, ContextStore }) => store === undefined && ContextStore === undefined,
    warning: 'without a store the session is in the cookie, readable, and signing out cannot end it; set `store`',
  },
  {
    when: ({ signed }) => signed === false,
    warning: 'unsigned cookies can be written by anybody; remove `signed: false`',
  },
  {
    when: ({ httpOnly }) => httpOnly === false,
    warning: 'scripts can read the cookie; remove `httpOnly: false`',
  },
  {
    when: ({ sameSite }) => sameSite !== true && !/^(?:lax|strict)$/i.test(String(sameSite)),
    warning: "browsers send the cookie along from other sites; set `sameSite: 'lax'`",
  },
  {
    when: ({ secure }, isProduction) => isProduction && secure !== true,
    warning: 'the cookie can travel unencrypted; set `secure: true`',
  },
  {
    when: ({ maxAge }) => maxAge === 'session',
    warning: 'a stolen cookie works for ever; set `maxAge` to milliseconds',
  },
  {
    when: ({ valid }) => isAsync(valid),
    warning: '`valid` is async, so every session counts as valid; make it sync, or use `loadUser`',
  },
]

/** One sentence for each weakness of koa-session's options. */
export const weaknessesOf = (
  options: Readonly<Record<string, unknown>>,
  isProduction: boolean,
): ReadonlyArray<string> => rules.filter(({ when }) => when(options, isProduction)).map(({ warning }) => warning)
