/**
 * A whole application of koa 3, koa-session and koa-passport as ES modules. Its tests pass before and after the
 * migration that the guide "from koa-passport" describes.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { appProject, type AppProject } from '../support/projects/appProject.js'

describe('koa 3, koa-session, koa-passport', () => {
  let project: AppProject
  beforeAll(async () => {
    project = await appProject('koa3-passport', {})
  })
  afterAll(() => project?.remove())

  it.each(['before', 'after'])(
    'its own tests pass %s the migration',
    async (app) => {
      const { code, text } = await project.node(['--test', '--test-reporter=tap', 'tests/api.test.js'], { APP: app })
      expect(text).toMatch(/# pass 5\b/)
      expect(text).toMatch(/# fail 0\b/)
      expect(code).toBe(0)
    },
    60_000,
  )
})
