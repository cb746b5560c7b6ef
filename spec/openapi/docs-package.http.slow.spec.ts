/** swagger-ui-dist is an optional peer: what happens in a project without it. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packedProject, type PackedProject } from '../support/projects/packed.js'

const program = (make: string) => `
  import Koa from 'koa'
  import Router from '@koa/router'
  import { apiApp } from 'koa-with-auth'
  void Router
  try {
    const api = ${make}
    const server = new Koa().use(api.routes()).listen(0, '127.0.0.1', async () => {
      const at = (path) => fetch('http://127.0.0.1:' + server.address().port + path).then(({ status }) => status)
      console.log(JSON.stringify([await at('/openapi.json'), await at('/docs'), await at('/docs/page.js')]))
      server.close()
    })
  } catch (error) {
    console.log(error.name + ': ' + error.message)
  }
`

describe('without swagger-ui-dist', () => {
  let project: PackedProject
  beforeAll(() => {
    project = packedProject(['koa', '@koa/router', 'fp-ts', 'io-ts'])
  })
  afterAll(() => project?.remove())

  const outputOf = async (make: string, mode?: string) => {
    const args = ['--input-type=module', '--eval', program(make)]
    const { NODE_ENV: _, ...env } = process.env
    const options = { cwd: project.folder, env: { ...env, ...(mode !== undefined && { NODE_ENV: mode }) } }
    return promisify(execFile)(process.execPath, args, options)
  }
  const run = async (make: string): Promise<string> => (await outputOf(make)).stdout.trim()

  it('apiApp() serves the document without the page, and without an error', async () => {
    expect(await run('apiApp()')).toBe('[200,404,404]')
  })

  it.each([
    ['left out, as newcomers leave it', undefined, 'npm install swagger-ui-dist'],
    ['development', 'development', 'npm install swagger-ui-dist'],
    ['production', 'production', ''],
    ['test', 'test', ''],
  ])('apiApp() says at start what the page needs, if NODE_ENV is %s', async (_what, mode, said) => {
    const { stderr } = await outputOf('apiApp()', mode)
    expect(said === '' ? stderr : stderr.replace(/^[^]*(npm install [\w-]+)[^]*$/, '$1')).toBe(said)
  })

  it.each(['apiApp({ docs: true })', 'apiApp({ docs: {} })'])(
    '%s is a TypeError that says what to install',
    async (make) => {
      expect(await run(make)).toMatch(/^TypeError: apiApp's docs: .* npm install swagger-ui-dist$/)
    },
  )

  it('docs: false serves neither', async () => {
    expect(await run('apiApp({ docs: false })')).toBe('[404,404,404]')
  })
})
