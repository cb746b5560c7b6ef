/** The package built from the sources into a folder, as `npm run build` does, without declarations and without type checks. */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import ts from 'typescript'
import { sources } from '../papers/docExamples.js'
import { madeOnce } from '../runs/madeOnce.js'
import { repository } from './typecheck.js'

const configuration = `${repository}.ci/tsconfig.cjs.json`
const { options } = ts.parseJsonConfigFileContent(
  ts.readConfigFile(configuration, ts.sys.readFile).config,
  ts.sys,
  repository,
  undefined,
  configuration,
)

const build = (folder: string): void => {
  // The entry points are loaded to read their exports, so their peers must be found
  symlinkSync(`${repository}node_modules`, join(folder, 'node_modules'))
  cpSync(`${repository}package.json`, join(folder, 'package.json'))
  for (const path of sources()) {
    const built = join(folder, path.replace(/^src/, 'dist/cjs').replace(/ts$/, 'js'))
    const text = readFileSync(repository + path, 'utf8')
    mkdirSync(dirname(built), { recursive: true })
    writeFileSync(built, ts.transpileModule(text, { compilerOptions: options, fileName: path }).outputText)
  }
  execFileSync(process.execPath, [`${repository}.ci/modules.mjs`, folder])
}

/** Builds it into a folder. */
export const buildPackage = (folder: string): void => {
  const built = madeOnce('built', build)
  for (const one of ['package.json', 'dist']) cpSync(join(built, one), join(folder, one), { recursive: true })
}
