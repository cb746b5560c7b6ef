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
  }, 400_000)
  afterAll(() => project?.remove())

  const run = async (make: string): Promise<string> => {
    const args = ['--input-type=module', '--eval', program(make)]
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: project.folder })
    return stdout.trim()
  }

  it('apiApp() serves the document without the page, and without an error', async () => {
    expect(await run('apiApp()')).toBe('[200,404,404]')
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
