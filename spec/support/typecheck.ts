/** Typechecks files with the TypeScript compiler API. */
import { dirname, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

export const repository = fileURLToPath(new URL('../..', import.meta.url))

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
export interface Mistake {
  readonly file: string
  readonly line: number
  readonly code: number
  readonly message: string
}

/** Checks files as one program; mistakes of the libraries that they use are reported, too. */
export const typecheck = (files: ReadonlyArray<string>, options: ts.CompilerOptions, root = repository): Mistake[] => {
  const program = ts.createProgram(files, { ...options, noEmit: true })
  return ts.getPreEmitDiagnostics(program).map(({ file, start = 0, code, messageText }) => ({
    file: file === undefined ? '' : relative(root, file.fileName),
    line: file === undefined ? 0 : file.getLineAndCharacterOfPosition(start).line + 1,
    code,
    message: ts.flattenDiagnosticMessageText(messageText, ' '),
  }))
}
