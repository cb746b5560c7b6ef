/**
 * The command without its process: from an audit, a task and the content of files to a result and an exit code.
 */
import * as E from 'fp-ts/lib/Either.js'
import { pipe } from 'fp-ts/lib/function.js'
import { readFileSync, writeFileSync } from 'node:fs'
import { table } from '../audit/Audit.js'
import { differencesOf, directions, type Difference } from '../audit/differences.js'
import { policyText, readPolicy, type PlacedLine } from '../audit/policyFile.js'
import { linesOf } from '../audit/PolicyLine.js'
import { visible } from '../audit/visible.js'
import { documentDifferences, documentFrom, type DocumentDifference } from './documentDifferences.js'
import type { Audited } from './exported.js'
import { findingsOf, findingsOfDocument, findingsOfPolicy } from './findings.js'
import type { Format, Options } from './Options.js'
import { sarifOf, type Finding } from './sarif.js'

/** The output, and the exit code: 1 if there are differences. */
export interface Result {
  readonly text: string
  readonly code: 0 | 1
}

/** Performs the task, or returns why that is impossible. */
export const perform = (options: Options, { audit, routers }: Audited, version: string): E.Either<string, Result> => {
  const { module, task, format } = options
  const inFormat = formatted(format, version)
  switch (task._tag) {
    case 'Print':
      return E.right({
        code: 0,
        text: inFormat(module, { text: table(audit), data: audit, findings: findingsOf(audit) }),
      })
    case 'Write': {
      const lines = linesOf(audit)
      return pipe(
        tryFile(task.file, () => writeFileSync(task.file, policyText(lines))),
        E.map(() => ({ code: 0, text: `${visible(task.file)}: ${counted(lines.length, 'line')} written` })),
      )
    }
    case 'Check':
      return pipe(
        tryFile(task.file, () => readFileSync(task.file)),
        E.chain((bytes) =>
          pipe(
            readPolicy(bytes),
            E.mapLeft((why) => `${task.file}: ${why}`),
          ),
        ),
        E.map((lines) => differencesOf(lines, linesOf(audit))),
        E.map((differences) => ({
          code: differences.length === 0 ? 0 : 1,
          text: inFormat(task.file, {
            text: policyReport(visible(task.file), options, differences),
            data: {
              differences: differences.map(({ direction, operation, text }) => ({ direction, operation, text })),
            },
            findings: findingsOfPolicy(differences),
          }),
        })),
      )
    case 'OpenApi':
      return pipe(
        tryFile(task.file, () => readFileSync(task.file, 'utf8')),
        E.chain((text) =>
          pipe(
            documentFrom(text),
            E.mapLeft((why) => `${task.file}: ${why}`),
          ),
        ),
        E.chain((document) => E.tryCatch(() => documentDifferences(document, routers, audit), messageOf)),
        E.map((differences) => ({
          code: differences.length === 0 ? 0 : 1,
          text: inFormat(task.file, {
            text: documentReport(visible(task.file), differences),
            data: { differences },
            findings: findingsOfDocument(differences),
          }),
        })),
      )
  }
}

// -------------------------------------------------------------------------------------
// what is printed
// -------------------------------------------------------------------------------------

interface Report {
  readonly text: string
  readonly data: object
  readonly findings: ReadonlyArray<Finding>
}

const formatted =
  (format: Format, version: string) =>
  (file: string, { text, data, findings }: Report): string => {
    if (format === 'text') return text
    return JSON.stringify(format === 'json' ? data : sarifOf(findings, file, version), null, 2)
  }

const policyReport = (
  file: string,
  { module, exportName }: Options,
  differences: ReadonlyArray<Difference<PlacedLine>>,
): string => {
  if (differences.length === 0) return `${file}: no difference`
  const groups = directions.flatMap((direction) => {
    const texts = differences.filter((one) => one.direction === direction).map(({ text }) => `  ${text}`)
    return texts.length === 0 ? [] : [`${direction}:`, ...texts]
  })
  return [
    `${file}: ${counted(differences.length, 'difference')}`,
    ...groups,
    `If this is meant: koa-with-auth audit ${visible(module)}${exportName === undefined ? '' : ` --export ${visible(exportName)}`} --write ${file}`,
  ].join('\n')
}

const documentReport = (file: string, differences: ReadonlyArray<DocumentDifference>): string =>
  differences.length === 0
    ? `${file}: no difference`
    : [`${file}: ${counted(differences.length, 'difference')}`, ...differences.map(({ text }) => `  ${text}`)].join(
        '\n',
      )

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`

// -------------------------------------------------------------------------------------
// files
// -------------------------------------------------------------------------------------

const tryFile = <A>(file: string, act: () => A): E.Either<string, A> =>
  E.tryCatch(act, (error) => `${file}: ${reasons[codeOf(error)] ?? messageOf(error)}`)

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or folder',
  EISDIR: 'is a folder',
  EACCES: 'permission denied',
}

const codeOf = (error: unknown): string =>
  typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : ''

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
