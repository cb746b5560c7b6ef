/** One line of a policy file, read as the file is. */
import * as E from 'fp-ts/lib/Either.js'
import { policyText, readPolicy, type PolicyLine } from '../../../src/audit/policy.js'

/** What a line says; `undefined` if it is not a line of a policy. */
export const lineFrom = (text: string): PolicyLine | undefined => {
  const read = readPolicy(Buffer.from(`${policyText([])}${text}\n`))
  if (E.isLeft(read) || read.right.length !== 1) return undefined
  const [{ lineNumber: _, ...line }] = read.right as [PolicyLine & { readonly lineNumber: number }]
  return line
}
