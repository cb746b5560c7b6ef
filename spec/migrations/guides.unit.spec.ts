/** The guides show the diff of each migration, between two applications whose own tests pass. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { documents } from '../support/papers/docExamples.js'
import { repository } from '../support/projects/typecheck.js'

// git exits with 1 if files differ
const diffOf = (app: string): string => {
  const files = [`spec/apps/${app}/before/app.js`, `spec/apps/${app}/after/app.js`]
  const { stdout } = spawnSync('git', ['diff', '--no-index', '--no-color', '-U1', ...files], {
    cwd: repository,
    encoding: 'utf8',
  })
  return stdout
    .slice(stdout.indexOf('\n@@') + 1)
    .replaceAll(/^@@.*$/gm, '@@')
    .replaceAll(/^ $/gm, '')
}

const shown = documents().flatMap((guide) =>
  [...readFileSync(repository + guide, 'utf8').matchAll(/^```diff app=(\S+)\n([\s\S]*?)^```$/gm)].map(
    ({ 1: app = '', 2: diff = '' }) => ({ guide, app, diff }),
  ),
)

describe('the diff of a migration', () => {
  it('is in the guides', () => {
    expect(shown.map(({ app }) => app).sort()).toStrictEqual(['koa2-jwt', 'koa3-passport'])
  })

  it.each(shown)('in $guide is the diff of the two versions of $app', ({ app, diff }) => {
    expect(diff).toBe(diffOf(app))
  })
})
