/** The kit in real test runners, in their own processes: right authenticators pass, wrong ones fail. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { userProject, type UserProject } from '../support/projects/userProject.js'

const examples = ['suite', 'right', 'mistakes', 'node'].map((name) => `examples/testing/${name}.ts`)

const suiteOf = (runner: string, subjects: string) => `
import { test } from '${runner}'
import { ${subjects} } from './${subjects}.js'
import { suite } from './suite.js'

suite(test, ${subjects})
`

// The counts at the end of a run, in the words of each runner
const counted = (output: string, pattern: RegExp): number => Number(pattern.exec(output)?.[1] ?? 0)

describe('test runners', () => {
  let project: UserProject
  beforeAll(() => {
    project = userProject(examples, {
      'mistakes.node.js': suiteOf('node:test', 'mistakes'),
      'right.test.js': suiteOf('vitest', 'right'),
      'mistakes.test.js': suiteOf('vitest', 'mistakes'),
      'vitest.config.js': "export default { cacheDir: '.vite', test: { include: ['*.test.js'] } }",
    })
  })
  afterAll(() => project?.remove())

  const tap = ['--test', '--test-reporter=tap']
  const vitest = ['node_modules/vitest/vitest.mjs', 'run']
  it.each([
    ['node:test', [...tap, 'node.js'], [...tap, 'mistakes.node.js'], /# pass (\d+)/, /# fail (\d+)/],
    [
      'vitest',
      [...vitest, 'right.test.js'],
      [...vitest, 'mistakes.test.js'],
      /Tests +(\d+) passed/,
      /Tests +(\d+) failed/,
    ],
  ])(
    '%s: right authenticators pass; wrong ones fail, with the counterexample and the fix',
    async (_runner, right, wrong, passed, failed) => {
      const good = await project.node(...right)
      expect([good.code, counted(good.output, failed)], good.output.slice(-2000)).toStrictEqual([0, 0])
      expect(counted(good.output, passed)).toBeGreaterThan(100)
      const bad = await project.node(...wrong)
      expect(bad.code).toBe(1)
      expect(counted(bad.output, failed)).toBeGreaterThanOrEqual(14)
      for (const part of ['X-PIN: 04711', 'fix: ']) expect(bad.output).toContain(part)
    },
  )

  it('needs no globals of a runner', async () => {
    const { code, output } = await project.node(
      '--input-type=module',
      '-e',
      `import { laws } from 'koa-with-auth/testing/laws'
       import { defaultErrorMapper } from 'koa-with-auth'
       await laws.errorMapper(defaultErrorMapper).check()`,
    )
    expect(code, output).toBe(0)
  })
})
