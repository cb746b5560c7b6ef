/**
 * A whole application of koa 2, @koa/router 12 and CommonJS, with tests in Jest. They pass with koa-jwt, and after the
 * migration that the guide "from koa-jwt" describes.
 */
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { appProject, type AppProject } from '../support/projects/appProject.js'

describe('koa 2.16, @koa/router 12, CommonJS, Jest, koa-jwt', () => {
  let project: AppProject
  beforeAll(async () => {
    project = await appProject('koa2-jwt', {
      koa: 'koa-2',
      '@koa/router': 'koa-router-12',
      '@types/koa': 'types-koa-2',
      '@types/koa__router': 'types-koa-router-12',
    })
  })
  afterAll(() => project?.remove())

  const jest = (config: string, app: string) =>
    project.run('jest', ['--config', config, '--ci', '--runInBand'], { APP: app })

  it.each(['before', 'after'])(
    'its own tests pass %s the migration, with babel-jest',
    async (app) => {
      const { code, text } = await jest('jest.babel.config.js', app)
      expect(text).toMatch(/Tests: +6 passed, 6 total/)
      expect(code).toBe(0)
    },
    120_000,
  )

  it('its tests fail if the guard of the router is left out', async () => {
    const open = join(project.folder, 'open')
    cpSync(join(project.folder, 'after'), open, { recursive: true })
    const app = readFileSync(join(open, 'app.js'), 'utf8')
    const opened = app
      .replace('withAuth(user)(new Router())', 'new Router()')
      .replaceAll('request.auth', 'request.auth?')
    expect(opened).toContain('  const router = new Router()\n')
    writeFileSync(join(open, 'app.js'), opened.replaceAll(/auth\?(?!\.)/g, 'auth ?? {}'))
    const { code, text } = await jest('jest.babel.config.js', 'open')
    expect(text).toContain('✕ tasks need a token')
    expect(code).not.toBe(0)
  })

  it('ts-jest finds the types with moduleResolution node', async () => {
    const { code, text } = await jest('jest.ts.config.js', 'after')
    expect(text).toMatch(/Tests: +1 passed, 1 total/)
    expect(code).toBe(0)
  })
})
