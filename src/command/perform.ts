/** The command without its process: from an audit, a task and the content of files to a result and an exit code. */
import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import * as E from 'fp-ts/lib/Either.js'
import { pipe } from 'fp-ts/lib/function.js'
import { codeOf } from '../core/data.js'
import { mysqlTables } from '../stores/mysqlStore.js'
import { postgresTables } from '../stores/postgresStore.js'
import { table, visible } from '../audit/Audit.js'
import { differencesOf, directions, type Difference } from '../audit/Difference.js'
import { linesOf, policyText, readPolicy } from '../audit/policy.js'
import { findingsOf, findingsOfDifferences, sameWordsIn, type AuditFinding } from '../audit/findings.js'
import { asvsTable, rowsFor } from './asvs.js'
import { verdictsOf } from './asvsVerdicts.js'
import { documentDifferences } from './document.js'
import { sarifOf } from './sarif.js'
import type { Audited } from '../audit/application.js'

/** Print the audit, write it as a policy file, or compare it with one or with an OpenAPI document. */
type Task =
  | { readonly _tag: 'Print' }
  | { readonly _tag: 'Asvs'; readonly level: number; readonly required: number }
  | { readonly _tag: 'Write' | 'Check' | 'OpenApi'; readonly file: string }

export interface Options {
  readonly _tag: 'Audit'
  readonly module: string
  /** The export to audit; `undefined` for the only export that can be audited. */
  readonly exportName: string | undefined
  readonly task: Task
  readonly format: 'text' | 'json' | 'sarif'
}

interface Sql {
  readonly _tag: 'Sql'
  readonly text: string
}

export const help = `Usage: koa-with-auth audit <module> [options]
       koa-with-auth sql postgres|mysql [--schema <name>]

Prints what protects each operation of what a module exports: a router of @koa/router, an apiApp, a Koa application, or
a function without parameters that makes one. The module is imported, and must not listen to a port.

Options:
  --export <name>    the export to audit; by default the default export, or the only one that can be audited
  --write <file>     write the policy into a file, to be reviewed and kept with the sources
  --check <file>     compare with such a file; exit 1 and list the differences, openings first
  --openapi <file>   compare with an OpenAPI document (JSON); exit 1 and list the differences
  --asvs             print OWASP ASVS 5.0.0, V6 to V10, as a table of Markdown: what was read off it, or how to show it
  --level <1|2|3>    with --asvs, the requirements up to this level; by default all
  --require <1|2|3>  with --asvs, exit 1 unless each requirement up to this level holds
  --json             print the result as JSON
  --sarif            print findings or differences as SARIF 2.1.0, for code scanning
  --help, --version

sql prints the statements that create the tables of postgresStore or mysqlStore, for a migration. They can run twice.
  --schema <name>    the schema of the tables, in PostgreSQL

Exit codes: 0 fine, 1 there are differences, 2 it could not be done.
`

export const optionsFrom = (
  args: ReadonlyArray<string>,
): E.Either<string, Options | Sql | { readonly _tag: 'Help' } | { readonly _tag: 'Version' }> => {
  const parsed = E.tryCatch(() => parseArgs({ args: [...args], allowPositionals: true, options: flags }), firstSentence)
  if (E.isLeft(parsed)) return parsed
  const { values, positionals } = parsed.right
  if (values.help === true) return E.right({ _tag: 'Help' })
  if (values.version === true) return E.right({ _tag: 'Version' })
  const [command, module, ...more] = positionals
  if (command === 'sql') return sqlStatements(positionals.slice(1), values)
  if (command === undefined) return E.left('a command is missing; there are audit and sql')
  if (command !== 'audit') return E.left(`no command "${command}"; there are audit and sql`)
  if (values.schema !== undefined) return E.left('audit takes no --schema')
  if (module === undefined) return E.left('audit takes a module: koa-with-auth audit ./dist/app.js')
  if (more.length > 0) return E.left(`audit takes one module; remove "${more[0]}"`)
  const { write, check, openapi, json = false, sarif = false } = values
  const files = { Write: write, Check: check, OpenApi: openapi }
  const tasks = (['Write', 'Check', 'OpenApi'] as const).flatMap((_tag) => {
    const file = files[_tag]
    return file === undefined ? [] : { _tag, file }
  })
  if (tasks.length > 1) return E.left('--write, --check and --openapi cannot be combined')
  const asvs = asvsTask(values, tasks.length > 0 || json || sarif)
  if (E.isLeft(asvs)) return asvs
  if (json && sarif) return E.left('--json and --sarif cannot be combined')
  if (write !== undefined && (json || sarif)) return E.left('--write cannot be combined with --json or --sarif')
  const empty = Object.entries({ write, check, openapi, export: values.export }).find(([, value]) => value === '')
  if (empty !== undefined) return E.left(`--${empty[0]} is empty`)
  return E.right({
    _tag: 'Audit',
    module,
    exportName: values.export,
    task: asvs.right ?? tasks[0] ?? { _tag: 'Print' },
    format: json ? 'json' : sarif ? 'sarif' : 'text',
  })
}

const asvsTask = (
  { asvs = false, level, require }: { readonly asvs?: boolean; readonly level?: string; readonly require?: string },
  isOther: boolean,
): E.Either<string, Task | undefined> => {
  const isAlone = level === undefined && require === undefined
  if (!asvs) return isAlone ? E.right(undefined) : E.left('--level and --require need --asvs')
  if (isOther) return E.left('--asvs cannot be combined with --write, --check, --openapi, --json or --sarif')
  const wrong = [level, require].find((one) => one !== undefined && !/^[123]$/.test(one))
  if (wrong !== undefined) return E.left(`a level is 1, 2 or 3, not "${wrong}"`)
  return E.right({ _tag: 'Asvs', level: Number(level ?? 3), required: Number(require ?? 0) })
}

const sqlStatements = (databases: ReadonlyArray<string>, options: object): E.Either<string, Sql> => {
  const [database, ...more] = databases
  const { schema, ...others } = { schema: undefined, ...options }
  const [other] = Object.keys(others)
  if (more.length > 0 || (database !== 'postgres' && database !== 'mysql'))
    return E.left('sql takes a database: koa-with-auth sql postgres, or mysql')
  if (other !== undefined) return E.left(`sql takes no --${other}`)
  if (database === 'mysql' && schema !== undefined)
    return E.left('sql mysql takes no --schema; connect to the database that has the tables')
  return E.tryCatch(() => {
    const { schema: first, tables } = postgresTables(schema, '--schema')
    const all = database === 'mysql' ? mysqlTables : [...first, ...tables]
    return { _tag: 'Sql', text: all.map((sql) => `${sql};\n`).join('') }
  }, firstSentence)
}

const flags = {
  schema: { type: 'string' },
  export: { type: 'string' },
  write: { type: 'string' },
  check: { type: 'string' },
  openapi: { type: 'string' },
  asvs: { type: 'boolean' },
  level: { type: 'string' },
  require: { type: 'string' },
  json: { type: 'boolean' },
  sarif: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean' },
} as const

// The rest of Node's message is advice on arguments that begin with a dash
const firstSentence = (error: unknown): string => String(error instanceof Error ? error.message : error).split('. ')[0]!

/** The output, and the exit code: 1 if there are differences. */
interface CommandResult {
  readonly text: string
  readonly code: 0 | 1
}

export const perform = (options: Options, audited: Audited, version: string): E.Either<string, CommandResult> => {
  const { module, task, format } = options
  const { audit, routers, deciders } = audited
  const inFormat = (file: string, { text, data, findings }: Report): string => {
    if (format === 'text') return text
    return JSON.stringify(format === 'json' ? data : sarifOf(findings, file, version), null, 2)
  }
  switch (task._tag) {
    case 'Print': {
      const text = inFormat(module, { text: table(audit), data: audit, findings: findingsOf(audit) })
      return E.right({ code: 0, text })
    }
    case 'Asvs': {
      const seen = verdictsOf(audited)
      const isMissing = rowsFor(seen, task.required).some(({ verdict }) => verdict !== 'holds')
      return E.right({ code: isMissing ? 1 : 0, text: asvsTable(rowsFor(seen, task.level)) })
    }
    case 'Write': {
      const lines = linesOf(audit)
      const [same] = sameWordsIn(deciders)
      if (same !== undefined) return E.left(`${task.file} is not written: ${same.message}; ${same.fix}`)
      return pipe(
        withFile(task.file, () => E.right(writeFileSync(task.file, policyText(lines)))),
        E.map(() => ({ code: 0, text: `${visible(task.file)}: ${countInWords(lines.length, 'line')} written` })),
      )
    }
    case 'Check':
      return pipe(
        withFile(task.file, () => readPolicy(readFileSync(task.file))),
        E.map((lines) => [...differencesOf(lines, linesOf(audit)), ...sameWordsIn(deciders).map(asDifference)]),
        E.map((differences) => reported(inFormat, task.file, differences, 'policy', options)),
      )
    case 'OpenApi':
      return pipe(
        withFile(task.file, () => documentDifferences(readFileSync(task.file, 'utf8'), routers, audit)),
        E.map((differences) => reported(inFormat, task.file, differences, 'document')),
      )
  }
}

// A reviewer cannot see whether it is a difference
const asDifference = ({ operation, message, fix }: AuditFinding): Difference => ({
  direction: 'changed',
  operation: visible(operation),
  text: visible(`${message}; ${fix}`),
})

interface Report {
  readonly text: string
  readonly data: object
  readonly findings: ReadonlyArray<AuditFinding>
}

const reported = (
  inFormat: (file: string, report: Report) => string,
  path: string,
  differences: ReadonlyArray<Difference>,
  of: 'policy' | 'document',
  meant?: Options,
): CommandResult => {
  const file = visible(path)
  const groups = directions.flatMap((direction) => {
    const texts = differences.filter((one) => one.direction === direction).map(({ text }) => `  ${text}`)
    return texts.length === 0 ? [] : [`${direction}:`, ...texts]
  })
  const count = differences.length === 0 ? 'no difference' : countInWords(differences.length, 'difference')
  const advice = meant && differences.length > 0 ? [`If this is meant: ${writing(meant)} ${file}`] : []
  return {
    code: differences.length === 0 ? 0 : 1,
    text: inFormat(path, {
      text: [`${file}: ${count}`, ...groups, ...advice].join('\n'),
      data: { differences: differences.map(({ direction, operation, text }) => ({ direction, operation, text })) },
      findings: findingsOfDifferences(differences, of),
    }),
  }
}

const writing = ({ module, exportName }: Options): string =>
  `koa-with-auth audit ${visible(module)}${exportName === undefined ? '' : ` --export ${visible(exportName)}`} --write`

const countInWords = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`

/** The result of an action on a file, or the name of the file and the reason why the action failed. */
const withFile = <A>(file: string, act: () => E.Either<string, A>): E.Either<string, A> =>
  pipe(
    E.tryCatch(act, (error) => fileErrors[codeOf(error)] ?? (error instanceof Error ? error.message : String(error))),
    E.flatten,
    E.mapLeft((why) => `${file}: ${why}`),
  )

const fileErrors: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or folder',
  EISDIR: 'is a folder',
  EACCES: 'permission denied',
}
