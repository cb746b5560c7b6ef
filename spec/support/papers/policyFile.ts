/** A policy file in a folder of its own, for the specs of a file. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Audit } from 'koa-with-auth/audit'
import { afterAll } from 'vitest'
import { linesOf, policyText } from '../../../src/audit/policy.js'

/** Its path, and a function that writes the policy of an audit into it. The folder is removed at the end. */
export const policyFile = () => {
  const folder = mkdtempSync(join(tmpdir(), 'koa-with-auth-policy-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const lock = join(folder, 'auth.lock')
  const keep = (audited: Audit): string => {
    writeFileSync(lock, policyText(linesOf(audited)))
    return lock
  }
  return { folder, lock, keep }
}
