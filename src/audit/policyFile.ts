/**
 * A policy as a file: a first line with its format, then a sorted line for each operation. So a change of protection is
 * a line in the diff of a pull request.
 *
 * Empty lines and lines that begin with `#` are comments.
 */
import * as E from 'fp-ts/lib/Either.js'
import { lineFrom, textOf, type PolicyLine } from './PolicyLine.js'

const FIRST = '# koa-with-auth policy 1'

const explanation = '# Who may call what, read off the guards by `koa-with-auth audit --write`. Do not edit.'

/** A line, and where it is in the file. */
export interface PlacedLine extends PolicyLine {
  /** From 1. */
  readonly lineNumber: number
}

/** A policy as the content of a file. */
export const policyText = (lines: ReadonlyArray<PolicyLine>): string =>
  [FIRST, explanation, ...lines.map(textOf), ''].join('\n')

/** Reads the lines of a file, or returns what is wrong with it. */
export const readPolicy = (bytes: Uint8Array): E.Either<string, ReadonlyArray<PlacedLine>> => {
  const text = decoded(bytes)
  if (text === undefined) return E.left('is not UTF-8')
  const [first, ...rest] = text.split(/\r?\n/)
  if (first !== FIRST) return E.left(`line 1: a policy file begins with "${FIRST}"`)
  const lines: PlacedLine[] = []
  for (const [index, content] of rest.entries()) {
    if (content === '' || content.startsWith('#')) continue
    const line = lineFrom(content)
    const lineNumber = index + 2
    if (line === undefined) return E.left(`line ${lineNumber} is not a line of a policy file`)
    lines.push({ ...line, lineNumber })
  }
  return E.right(lines)
}

const decoded = (bytes: Uint8Array): string | undefined => {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}
