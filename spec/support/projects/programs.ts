/**
 * Programs that some suites need, which npm does not install. If one is missing, the suites are skipped and say so. If
 * `CI` is set, that is an error.
 */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { describe, it } from 'vitest'

type Env = NodeJS.ProcessEnv

const isExecutable = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** The path of the first of these names that is on the PATH. */
export const programPath = (names: ReadonlyArray<string>, env: Env): string | undefined =>
  (env['PATH'] ?? '')
    .split(delimiter)
    .flatMap((folder) => names.map((name) => join(folder, name)))
    .find(isExecutable)

/**
 * A message that none of them is installed, and how to install the first; `undefined` if one is. Throws if `CI` is set.
 */
export const missingProgram = (names: ReadonlyArray<string>, env: Env): string | undefined => {
  if (programPath(names, env) !== undefined) return undefined
  const fix = `no ${names[0]} on the PATH; apt-get install ${names[0]}`
  if (env['CI']) throw new Error(fix)
  return fix
}

/** A suite, unless something is missing. Then it is one skipped test, and the end of the run says what to install. */
export const describeUnless = (missing: string | undefined, name: string, suite: () => void): void => {
  if (missing === undefined) describe(name, suite)
  else describe(name, () => it('needs what is missing here', ({ skip }) => skip(missing)))
}
