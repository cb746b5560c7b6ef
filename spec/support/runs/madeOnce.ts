/** What several spec files need alike, such as the built package, is made once in a run. The run removes it at its end. */
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const variable = 'KOA_WITH_AUTH_MADE_ONCE'

// Vitest runs one for each project, in one process; the workers inherit the variable
/** The global setup of a run. */
export const setup = (): (() => void) => {
  process.env[variable] ??= mkdtempSync(join(tmpdir(), 'koa-with-auth-run-'))
  const folder = process.env[variable]
  return () => remove(folder)
}

const remove = (folder: string): void => rmSync(folder, { recursive: true, force: true })

// A spec that another runner starts has no folder of a run
const folderOfRun = (): string => {
  const known = process.env[variable]
  if (known !== undefined) return known
  const folder = mkdtempSync(join(tmpdir(), 'koa-with-auth-process-'))
  process.on('exit', () => remove(folder))
  process.env[variable] = folder
  return folder
}

/**
 * The path of a folder that `make` filled, in this process or in another one of the run. Copy it before you change it.
 *
 * Two processes can make it at the same time. Then the first one to finish wins.
 */
export const madeOnce = (name: string, make: (folder: string) => void): string => {
  const made = join(folderOfRun(), name)
  if (existsSync(made)) return made
  const folder = join(folderOfRun(), `${name}-of-${process.pid}`)
  mkdirSync(folder, { recursive: true })
  make(folder)
  try {
    renameSync(folder, made)
  } catch (error) {
    if (!existsSync(made)) throw error
    remove(folder)
  }
  return made
}
