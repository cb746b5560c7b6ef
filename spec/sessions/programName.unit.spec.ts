/** C-08: programs without a name do not share their sessions (S09). */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Koa from 'koa'
import { sessions } from 'koa-with-auth/sessions'
import { memoryStore } from 'koa-with-auth/stores'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { strongKey } from '../support/sites/sessionsApp.js'

const loadUser = (): { username: string } | undefined => undefined

const made = (env: string, program: string, name?: string) => {
  const app = new Koa({ keys: [strongKey], env })
  const before = [...process.argv]
  process.argv[1] = program
  const warnings: string[] = []
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation((warning) => void warnings.push(String(warning)))
  const cwd = vi.spyOn(process, 'cwd').mockReturnValue(join(program, '..'))
  try {
    sessions(app, { loadUser, store: memoryStore(), ...(name !== undefined && { name }) })
    return warnings
  } finally {
    process.argv.splice(0, process.argv.length, ...before)
    warn.mockRestore()
    cwd.mockRestore()
  }
}

describe('C-08 a program without a name', () => {
  const folder = mkdtempSync(join(tmpdir(), 'unnamed-'))
  afterEach(() => rmSync(join(folder, 'package.json'), { force: true }))

  it('is refused in production, and warned about otherwise; the message names the option', () => {
    expect(() => made('production', join(folder, 'app.js'))).toThrow(/sessions\(app, \{ name \}\)/)
    expect(made('development', join(folder, 'app.js'))).toEqual([expect.stringContaining('{ name }')])
  })

  it('with the option or a package.json that has a name there is no warning', () => {
    expect(made('production', join(folder, 'app.js'), 'shop')).toEqual([])
    writeFileSync(join(folder, 'package.json'), '{ "name": "shop" }')
    expect(made('production', join(folder, 'app.js'))).toEqual([])
    for (const name of ['""', '"  "', '7']) {
      writeFileSync(join(folder, 'package.json'), `{ "name": ${name} }`)
      expect(() => made('production', join(folder, 'app.js')), name).toThrow('name')
    }
  })
})
