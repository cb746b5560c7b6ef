/**
 * How many files a change needs, measured: each patch of spec/repository/traces makes one of the seven changes that src/README.md
 * traces, or adds what has one truth: a kind, an event, a finding, an entry point, an option. It is applied to a copy of the repository, which is
 * compiled, and runs its own spec and those of the room.
 *
 * If a patch no longer applies, make the change anew, and write `git diff -U2` into its file.
 */
import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { repository } from '../support/projects/typecheck.js'

const traces: ReadonlyArray<[patch: string, atMost: number, specs: ReadonlyArray<string>]> = [
  ['1-kind', 3, ['spec/core/lists.unit.spec.ts', 'spec/kinds/http.unit.spec.ts', 'spec/kinds/apiKey.unit.spec.ts']],
  ['2-level', 6, ['spec/koa/levels.unit.spec.ts', 'spec/koa/plans.law.spec.ts', 'spec/core/Requirement.unit.spec.ts']],
  [
    '3-body',
    6,
    ['spec/openapi/security-problem.unit.spec.ts', 'spec/core/Settings.unit.spec.ts', 'spec/koa/respond.unit.spec.ts'],
  ],
  ['4-claim', 8, ['spec/jwt/httpJwt.unit.spec.ts', 'spec/jwt/attacks.http.spec.ts']],
  ['5-method', 9, ['spec/stores/oneTimeIds.unit.spec.ts', 'spec/sign-in/oidc.unit.spec.ts']],
  ['6-field', 6, ['spec/keys/apiKeys.unit.spec.ts', 'spec/keys/KeyRecord.unit.spec.ts']],
  ['7-upgrade', 6, ['spec/upgrades/upgrades.http.spec.ts']],
  // what has one truth: with what says it to users, and a spec that fails if a place is forgotten
  ['8-event', 3, ['spec/events/channels.http.spec.ts']],
  ['9-finding', 3, ['spec/audit/seal.unit.spec.ts']],
  ['10-entry', 3, ['spec/repository/entryPoints.unit.spec.ts']],
  ['11-option', 3, ['spec/audit/policy-options.unit.spec.ts', 'spec/kinds/apiKey.unit.spec.ts']],
]

const run = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), 'koa-with-auth-traces-'))
const inCopy = async (program: string, ...args: ReadonlyArray<string>): Promise<string> => {
  // a run of its own: what this run has made once, such as the schema of events, was made without the patch
  const env = { ...process.env, VITEST: '', NODE_OPTIONS: '', KOA_WITH_AUTH_MADE_ONCE: undefined }
  try {
    const { stdout } = await run(program, args, { cwd: folder, env, maxBuffer: 2 ** 26 })
    return stdout
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { readonly stdout?: string; readonly stderr?: string }
    throw new Error(`${program} ${args.join(' ')}\n${stdout.slice(-4000)}\n${stderr.slice(-2000)}`, { cause: error })
  }
}

beforeAll(() => {
  const filter = (path: string) => !path.includes('node_modules')
  for (const part of 'src spec examples .ci README.md package.json tsconfig.json vitest.config.ts'.split(' '))
    cpSync(join(repository, part), join(folder, part), { recursive: true, filter })
  symlinkSync(join(repository, 'node_modules'), join(folder, 'node_modules'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('a change of', () => {
  it.each(traces)('%s needs at most %i files', async (name, atMost, specs) => {
    const patch = join(repository, 'spec/repository/traces', `${name}.patch`)
    const changed = [...readFileSync(patch, 'utf8').matchAll(/^\+\+\+ b\/((?!spec\/changed).+)$/gm)].map(
      ([, file]) => file,
    )
    expect(changed.length).toBeGreaterThan(0)
    expect(changed.length).toBeLessThanOrEqual(atMost)
    await inCopy('git', 'apply', '-C1', patch)
    try {
      const check = ['node_modules/typescript-7/bin/tsc', '-p', 'tsconfig.json', '--incremental', 'false']
      const test = ['node_modules/vitest/vitest.mjs', 'run', 'spec/changed', ...specs, '--maxWorkers=1']
      for (const args of [check, test]) await inCopy(process.execPath, ...args)
    } finally {
      await inCopy('git', 'apply', '-C1', '-R', patch)
    }
  })
})
