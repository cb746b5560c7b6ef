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

  it('node:test: right authenticators pass', async () => {
    const { code, output } = await project.node('--test', '--test-reporter=tap', 'node.js')
    expect([code, counted(output, /# fail (\d+)/)], output.slice(-2000)).toStrictEqual([0, 0])
    expect(counted(output, /# pass (\d+)/)).toBeGreaterThan(100)
  })

  it('node:test: wrong ones fail, with the counterexample and the fix', async () => {
    const { code, output } = await project.node('--test', '--test-reporter=tap', 'mistakes.node.js')
    expect(code).toBe(1)
    expect(counted(output, /# fail (\d+)/)).toBeGreaterThanOrEqual(14)
    expect(output).toContain('X-PIN: 04711')
    expect(output).toContain('fix: ')
  })

  it('vitest: right authenticators pass', async () => {
    const { code, output } = await project.node('node_modules/vitest/vitest.mjs', 'run', 'right.test.js')
    expect(code, output.slice(-2000)).toBe(0)
    expect(counted(output, /Tests +(\d+) passed/)).toBeGreaterThan(100)
  })

  it('vitest: wrong ones fail, with the counterexample and the fix', async () => {
    const { code, output } = await project.node('node_modules/vitest/vitest.mjs', 'run', 'mistakes.test.js')
    expect(code).toBe(1)
    expect(counted(output, /Tests +(\d+) failed/)).toBeGreaterThanOrEqual(14)
    expect(output).toContain('X-PIN: 04711')
    expect(output).toContain('fix: ')
  })

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
