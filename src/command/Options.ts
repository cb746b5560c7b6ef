/**
 * The options of the command.
 */
import * as E from 'fp-ts/lib/Either.js'
import { parseArgs } from 'node:util'

/**
 * What to do with the audit: print it, write it as a policy file, or compare it with one or with an OpenAPI document.
 */
export type Task =
  | { readonly _tag: 'Print' }
  | { readonly _tag: 'Write'; readonly file: string }
  | { readonly _tag: 'Check'; readonly file: string }
  | { readonly _tag: 'OpenApi'; readonly file: string }

/** The format of the result. */
export type Format = 'text' | 'json' | 'sarif'

/** The options of an audit. */
export interface Options {
  readonly _tag: 'Audit'
  readonly module: string
  /** The export to audit; `undefined` for the only one that can be audited. */
  readonly exportName: string | undefined
  readonly task: Task
  readonly format: Format
}

/** A request to the command. */
export type Request = Options | { readonly _tag: 'Help' } | { readonly _tag: 'Version' }

/** The text of `--help`. */
export const help = `Usage: koa-with-auth audit <module> [options]

Prints what protects each operation of what a module exports: a router of @koa/router, an apiApp, a Koa application, or
a function without parameters that makes one. The module is loaded, but listens to no port and uses no network.

Options:
  --export <name>    the export to audit; by default the default export, or the only one that can be audited
  --write <file>     write the policy into a file, to be reviewed and kept with the sources
  --check <file>     compare with such a file; exit 1 and list the differences, openings first
  --openapi <file>   compare with an OpenAPI document (JSON); exit 1 and list the differences
  --json             print the result as JSON
  --sarif            print findings or differences as SARIF 2.1.0, for code scanning
  --help, --version

Exit codes: 0 fine, 1 there are differences, 2 it could not be done.
`

/** Reads the arguments of the command, or says what is wrong with them. */
export const optionsFrom = (args: ReadonlyArray<string>): E.Either<string, Request> => {
  const parsed = E.tryCatch(
    () => parseArgs({ args: [...args], allowPositionals: true, options: flags }),
    (error) => firstSentence(error),
  )
  if (E.isLeft(parsed)) return parsed
  const { values, positionals } = parsed.right
  if (values.help === true) return E.right({ _tag: 'Help' })
  if (values.version === true) return E.right({ _tag: 'Version' })
  const [command, module, ...more] = positionals
  if (command !== 'audit') {
    return E.left(
      command === undefined ? 'a command is missing; the only one is audit' : `no command "${command}"; there is audit`,
    )
  }
  if (module === undefined) return E.left('audit takes a module: koa-with-auth audit ./dist/app.js')
  if (more.length > 0) return E.left(`audit takes one module; remove "${more[0]}"`)
  const { write, check, openapi, json = false, sarif = false } = values
  const tasks: ReadonlyArray<Task> = [
    ...(write === undefined ? [] : [{ _tag: 'Write' as const, file: write }]),
    ...(check === undefined ? [] : [{ _tag: 'Check' as const, file: check }]),
    ...(openapi === undefined ? [] : [{ _tag: 'OpenApi' as const, file: openapi }]),
  ]
  if (tasks.length > 1) return E.left('--write, --check and --openapi cannot be combined')
  if (json && sarif) return E.left('--json and --sarif cannot be combined')
  if (write !== undefined && (json || sarif)) return E.left('--write cannot be combined with --json or --sarif')
  const empty = Object.entries({ write, check, openapi, export: values.export }).find(([, value]) => value === '')
  if (empty !== undefined) return E.left(`--${empty[0]} is empty`)
  return E.right({
    _tag: 'Audit',
    module,
    exportName: values.export,
    task: tasks[0] ?? { _tag: 'Print' },
    format: json ? 'json' : sarif ? 'sarif' : 'text',
  })
}

const flags = {
  export: { type: 'string' },
  write: { type: 'string' },
  check: { type: 'string' },
  openapi: { type: 'string' },
  json: { type: 'boolean' },
  sarif: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean' },
} as const

// The rest of Node's message is advice on arguments that begin with a dash
const firstSentence = (error: unknown): string => String(error instanceof Error ? error.message : error).split('. ')[0]!
