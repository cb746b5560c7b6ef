/** A user's project outside of the repository: the package built from the sources, its dependencies, and some files. */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs' // prettier-ignore
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import ts from 'typescript'
import { buildPackage } from './builtPackage.js'
import { ownOptions, repository } from './typecheck.js'

interface Run {
  readonly code: number
  /** Its output to stdout, then its output to stderr. */
  readonly output: string
  readonly stdout: string
  readonly stderr: string
}

export type UserProject = ReturnType<typeof userProject>

const esModules = { module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler }

const outputs = new Map<string, string>()

/** A source of the repository as JavaScript. */
export const compiled = (path: string): string => {
  const known = outputs.get(path) ?? compile(path)
  outputs.set(path, known)
  return known
}

const compile = (path: string): string => {
  const compilerOptions = { ...ownOptions(), ...esModules, noEmit: false, sourceMap: false, declaration: false }
  return ts.transpileModule(readFileSync(repository + path, 'utf8'), { compilerOptions, fileName: path }).outputText
}

/** The examples that are needed for a server or a policy. */
export const exampleSources = (): string[] =>
  readdirSync(`${repository}examples`, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !/^(?:testing|mcp|create)/.test(path))
    .map((path) => `examples/${path}`)

/** Makes it. `examples` are compiled into its folder, `files` are written as they are. */
export const userProject = (examples: ReadonlyArray<string>, files: Readonly<Record<string, string>>) => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'koa-with-auth-tests-')))
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  const own = 'node_modules/koa-with-auth'
  mkdirSync(join(folder, 'node_modules'), { recursive: true })
  for (const name of readdirSync(`${repository}node_modules`)) {
    if (!name.startsWith('.')) symlinkSync(`${repository}node_modules/${name}`, join(folder, 'node_modules', name))
  }
  buildPackage(join(folder, own))
  for (const path of examples) write(path.replace(/^.*\//, '').replace(/ts$/, 'js'), compiled(path))
  write('package.json', JSON.stringify({ name: 'user', private: true, type: 'module' }))
  for (const [path, text] of Object.entries(files)) write(path, text)
  // The settings of the surrounding test runner do not apply to this process
  const { NODE_OPTIONS: _, NODE_TEST_CONTEXT: __, VITEST: ___, ...env } = process.env
  return {
    folder,
    /** Runs Node there until its end. */
    node: (...args: ReadonlyArray<string>) =>
      new Promise<Run>((resolve) => {
        const options = { cwd: folder, env: { ...env, NO_COLOR: '1', NODE_ENV: 'test' }, timeout: 60_000 }
        execFile(process.execPath, args, options, (error, stdout, stderr) => {
          resolve({ code: error === null ? 0 : Number(error.code ?? 1), output: stdout + stderr, stdout, stderr })
        })
      }),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
