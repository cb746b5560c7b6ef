/** The package built from the sources into a folder, as `npm run build` does, without declarations and without type checks. */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import ts from 'typescript'
import { sources } from './docExamples.js'
import { repository } from './typecheck.js'

const configuration = `${repository}tsconfig.cjs.json`
const { options } = ts.parseJsonConfigFileContent(
  ts.readConfigFile(configuration, ts.sys.readFile).config,
  ts.sys,
  repository,
  undefined,
  configuration,
)

/** Builds it. Its peers must be found from the folder, because the entry points are loaded to read what they export. */
export const buildPackage = (folder: string): void => {
  mkdirSync(folder, { recursive: true })
  cpSync(`${repository}package.json`, join(folder, 'package.json'))
  for (const path of sources()) {
    const built = join(folder, path.replace(/^src/, 'dist/cjs').replace(/ts$/, 'js'))
    const text = readFileSync(repository + path, 'utf8')
    mkdirSync(dirname(built), { recursive: true })
    writeFileSync(built, ts.transpileModule(text, { compilerOptions: options, fileName: path }).outputText)
  }
  execFileSync(process.execPath, [`${repository}.ci/modules.mjs`, folder])
}
