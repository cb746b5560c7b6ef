/** `expectIsolated` of the packed package in Jest, Vitest and node:test, in their own processes: a right shop passes, and each leak fails. */
import { execFile } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packedProject, type PackedProject } from '../support/projects/packed.js'
import { repository } from '../support/projects/typecheck.js'
import { compiled } from '../support/projects/userProject.js'
import { leaks } from '../support/sites/leakyShop.js'

const suite = (runner: string): string => `
${runner}
import assert from 'node:assert/strict'
import { expectIsolated } from 'koa-with-auth/testing'
import { leaks, shop, sweep } from './leakyShop.js'

test('a right shop', async () => {
  const checked = await expectIsolated(shop(), sweep)
  assert.equal(checked.length, 8)
})
for (const leak of leaks) {
  test(leak, async () => {
    await assert.rejects(expectIsolated(shop(leak), sweep), { name: 'LawViolations', message: /curl -(?:i|I)/ })
  })
}
test('that fails', () => expectIsolated(shop('GET reads it'), sweep))
`

const peers = ['koa', '@koa/router', 'fp-ts', 'io-ts', 'koa-session', 'vitest', '@types/koa', '@types/node']

describe('expectIsolated', () => {
  let project: PackedProject
  beforeAll(() => {
    project = packedProject(peers)
    const write = (name: string, text: string) => writeFileSync(join(project.folder, name), text)
    write('leakyShop.js', compiled('spec/support/sites/leakyShop.ts'))
    write('jest.test.js', suite("import { test } from '@jest/globals'"))
    write('vitest.test.js', suite("import { test } from 'vitest'"))
    write('node.test.js', suite("import { test } from 'node:test'"))
    write('vitest.config.js', "export default { cacheDir: '.vite', test: { include: ['vitest.test.js'] } }")
    mkdirSync(join(project.folder, 'node_modules/@jest'), { recursive: true })
    symlinkSync(
      join(repository, 'spec/apps/node_modules/@jest/globals'),
      join(project.folder, 'node_modules/@jest/globals'),
    )
  })
  afterAll(() => project?.remove())

  const passed = leaks.length + 1
  it.each([
    [
      'Jest',
      [
        '--experimental-vm-modules',
        join(repository, 'spec/apps/node_modules/jest/bin/jest.js'),
        '--config',
        '{ "transform": {}, "testMatch": ["**/jest.test.js"] }',
      ],
      `1 failed, ${passed} passed`,
    ],
    ['Vitest', ['node_modules/vitest/vitest.mjs', 'run'], `1 failed | ${passed} passed`],
    ['node:test', ['--test', '--test-reporter=tap', 'node.test.js'], `# pass ${passed}\n# fail 1`],
  ])('in %s', async (_runner, args, counts) => {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, args, {
      cwd: project.folder,
      env: { ...process.env, FORCE_COLOR: '0', NO_COLOR: '1' },
    }).catch((error: unknown) => error as { readonly stdout: string; readonly stderr: string })
    expect(stdout + stderr).toContain(counts)
    expect(stdout + stderr).toContain(`curl -i -X GET "$URL"'/orders/order-b1' -H 'Authorization: Bearer anna'`)
  })
})
