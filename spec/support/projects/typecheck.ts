/** Typechecks files with the TypeScript compiler API. */
import { readFileSync } from 'node:fs'
import { dirname, posix, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

export const repository = fileURLToPath(new URL('../../..', import.meta.url))

// Safe: it is the package.json of this repository
const manifest = JSON.parse(readFileSync(`${repository}package.json`, 'utf8')) as {
  readonly exports: Readonly<Record<string, unknown>>
}

/** The modules that package.json exports, and their sources. */
export const exportedModules = Object.entries(manifest.exports)
  .filter(([, built]) => typeof built !== 'string')
  .map(([path]) => ({ name: `koa-with-auth${path.slice(1)}`, source: posix.join('src', path, 'index.ts') }))

/** The repository's own compiler options. */
export const ownOptions = (): ts.CompilerOptions => {
  const path = `${repository}tsconfig.json`
  const { options } = ts.parseJsonConfigFileContent(
    ts.readConfigFile(path, ts.sys.readFile).config,
    ts.sys,
    dirname(path),
  )
  return options
}

/** A mistake that the compiler found. */
export type Mistake = ReturnType<typeof mistakesIn>[number]

// Declarations of libraries are a thousand files, so the programs of one process share them
const parsed = new Map<string, ts.SourceFile | undefined>()

/** A program of files; nothing is written. */
export const programOf = (files: ReadonlyArray<string>, given: ts.CompilerOptions): ts.Program => {
  const options = { ...given, noEmit: true }
  const host = ts.createCompilerHost(options)
  const getSourceFile: ts.CompilerHost['getSourceFile'] = (path, how, ...more) => {
    if (!path.includes('/node_modules/')) return host.getSourceFile(path, how, ...more)
    const key = `${path} ${JSON.stringify(how)}`
    if (!parsed.has(key)) parsed.set(key, host.getSourceFile(path, how, ...more))
    return parsed.get(key)
  }
  return ts.createProgram(files, options, { ...host, getSourceFile })
}

const mistakesIn = (diagnostics: ReadonlyArray<ts.Diagnostic>, root: string) =>
  diagnostics.map(({ file, start = 0, code, messageText }) => ({
    file: file === undefined ? '' : relative(root, file.fileName),
    line: file === undefined ? 0 : file.getLineAndCharacterOfPosition(start).line + 1,
    code,
    message: ts.flattenDiagnosticMessageText(messageText, ' '),
  }))

/** Checks files as one program. Mistakes of the libraries that they use are reported, too. */
export const typecheck = (files: ReadonlyArray<string>, options: ts.CompilerOptions, root = repository): Mistake[] =>
  mistakesIn(ts.getPreEmitDiagnostics(programOf(files, options)), root)

/** The mistakes in these files of a program, and not in what they import, because `npm run typecheck` checks the sources. */
export const mistakesOfFiles = (program: ts.Program, files: ReadonlyArray<string>): Mistake[] => {
  const ofFile = (path: string) => {
    const file = program.getSourceFile(path)
    return [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)]
  }
  const all = [...program.getOptionsDiagnostics(), ...program.getGlobalDiagnostics(), ...files.flatMap(ofFile)]
  return mistakesIn(all, repository)
}
