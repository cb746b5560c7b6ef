/** The files of the docs page: an exact list, read from the installed package (A-27, ASVS 3.6.1). */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { assetsIn, findSwaggerUi, requireSwaggerUi } from '../../src/openapi/page.js'

const installed = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'))

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'docs-assets-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

describe('the place of swagger-ui-dist', () => {
  it('is found if it is installed', () => {
    expect(findSwaggerUi()).toBe(installed)
    expect(requireSwaggerUi('docs')).toBe(installed)
  })

  it('is needed for the page: without it, a TypeError says what to install', () => {
    const from = pathToFileURL(join(folder, 'index.js'))
    expect(findSwaggerUi(from)).toBeUndefined()
    expect(() => requireSwaggerUi('docs', from)).toThrow(TypeError)
    expect(() => requireSwaggerUi('docs', from)).toThrow(/^docs: .*npm install swagger-ui-dist$/)
  })
})

describe('the list of files', () => {
  const fromPackage = ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-16x16.png', 'favicon-32x32.png']

  it('is exactly what the page links to', () => {
    expect(assetsIn(installed).map(({ name }) => name)).toEqual([...fromPackage, 'page.css', 'page.js'])
  })

  it('has the files of the package, byte by byte', async () => {
    for (const { name, load } of assetsIn(installed).filter((one) => fromPackage.includes(one.name))) {
      expect((await load()).content.equals(readFileSync(join(installed, name))), name).toBe(true)
    }
  })

  it('has the media types that browsers demand', async () => {
    const types = await Promise.all(assetsIn(installed).map(async ({ name, load }) => [name, (await load()).type]))
    expect(Object.fromEntries(types)).toEqual({
      'swagger-ui.css': 'text/css; charset=utf-8',
      'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
      'favicon-16x16.png': 'image/png',
      'favicon-32x32.png': 'image/png',
      'page.css': 'text/css; charset=utf-8',
      'page.js': 'text/javascript; charset=utf-8',
    })
  })

  it('has another validator for other content, and the same for the same', async () => {
    for (const name of fromPackage) cpSync(join(installed, name), join(folder, name))
    const etag = async (of: string) => (await assetsIn(of)[0]!.load()).etag
    expect(await etag(folder)).toBe(await etag(installed))
    writeFileSync(join(folder, 'swagger-ui.css'), '/* updated */')
    expect(await etag(folder)).not.toBe(await etag(installed))
    expect(await etag(folder)).toMatch(/^"[\w-]{43}"$/)
  })

  it('reads a file once; a file that could not be read is tried again', async () => {
    const [css] = assetsIn(folder)
    await expect(css!.load()).rejects.toThrow('ENOENT')
    writeFileSync(join(folder, 'swagger-ui.css'), 'a{}')
    const first = await css!.load()
    writeFileSync(join(folder, 'swagger-ui.css'), 'b{}')
    expect(await css!.load()).toBe(first)
  })
})
