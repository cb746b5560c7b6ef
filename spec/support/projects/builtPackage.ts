/** The package built from the sources into a folder, as `npm run build` does, without declarations and without type checks. */
import { execFileSync } from 'node:child_process'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { madeOnce } from '../runs/madeOnce.js'
import { repository } from './typecheck.js'

const build = (folder: string): void => {
  cpSync(`${repository}package.json`, join(folder, 'package.json'))
  execFileSync(process.execPath, [`${repository}.ci/bundle.mjs`, folder])
}

/** Builds it into a folder. */
export const buildPackage = (folder: string): void => {
  const built = madeOnce('built', build)
  for (const one of ['package.json', 'dist']) cpSync(join(built, one), join(folder, one), { recursive: true })
}
