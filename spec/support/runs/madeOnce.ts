/** What several spec files need alike, such as the built package, is made once in a run. The run removes it at its end. */
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const variable = 'KOA_WITH_AUTH_MADE_ONCE'

// Vitest calls it for each project, in one process; the workers inherit the variable, and so does a run that a spec starts
/** The global setup of a run. Who made the folder removes it. */
export const setup = (): (() => void) => {
  const isMade = process.env[variable] !== undefined
  process.env[variable] ??= mkdtempSync(join(tmpdir(), 'koa-with-auth-run-'))
  const folder = process.env[variable]
  return isMade ? () => {} : () => remove(folder)
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
 * The path of a folder that `make` filled, in this process or in another one of the run, which it waits for. Copy it
 * before you change it.
 */
export const madeOnce = (name: string, make: (folder: string) => void): string => {
  const made = join(folderOfRun(), name)
  const folder = `${made}-unfinished`
  while (!existsSync(made)) {
    if (!isMine(folder)) {
      Atomics.wait(asleep, 0, 0, 100)
      continue
    }
    try {
      // another process can have finished since the last look
      if (existsSync(made)) break
      make(folder)
      renameSync(folder, made)
    } finally {
      // if it failed, the next process tries
      remove(folder)
    }
  }
  return made
}

const asleep = new Int32Array(new SharedArrayBuffer(4))

// Of several processes, one can make a folder
const isMine = (folder: string): boolean => {
  try {
    mkdirSync(folder)
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  }
}
