/** The docs page, and the files that it consists of. */
import { Script } from 'node:vm'
import { describe, expect, it, afterEach, beforeEach } from 'vitest'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { assetsIn, pageOf } from '../../src/openapi/docsPage.js'
import { findSwaggerUi, requireSwaggerUi } from '../../src/openapi/swaggerUi.js'

// The HTML and the header fields of the docs page: A-27, ASVS 3.4.

type Content = Parameters<typeof pageOf>[0]

const page: Content = { title: 'Pets', path: '/docs', documentPath: '/openapi.json', servers: [] }

const htmlOf = (content: Content): string => pageOf(content).html.content.toString()

describe('the HTML of the docs page', () => {
  it.each([
    ['an end tag and a script', '</title><script>alert(1)</script>'],
    ['an end of the attribute', `" onload="alert(1)" x='`],
    ['an entity', '&lt;script&gt;'],
    ['an end of a comment', '--><script>'],
    ['line separators', 'a\u2028b\u2029c'],
  ])('A-27 writes %s as text, in title and description', (_what, text) => {
    const html = htmlOf({ ...page, title: text, description: text })
    // Nothing can end the element or attribute that contains it
    const plain = htmlOf({ ...page, title: '', description: '' })
    for (const character of `<>"'\u2028\u2029`) {
      expect(html.split(character).length, character).toBe(plain.split(character).length)
    }
    const decoded = html.replace(/&#(\d+);/g, (_all, code: string) => String.fromCharCode(Number(code)))
    expect(decoded.split(text)).toHaveLength(3)
  })

  it('has no inline script or style, no event handler, and nothing from another place', () => {
    const html = htmlOf({ ...page, description: 'All about pets' })
    expect(html.match(/<script[^>]*>[^<]/g)).toBeNull()
    expect(html).not.toMatch(/<style|style=|\son\w+=|https?:|\/\/|javascript:/)
    expect([...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, to]) => to)).toEqual([
      './docs/favicon-16x16.png',
      './docs/favicon-32x32.png',
      './docs/swagger-ui.css',
      './docs/page.css',
      './docs/swagger-ui-bundle.js',
      './docs/page.js',
      './openapi.json',
    ])
  })
})

describe('links of the docs page', () => {
  it.each([
    { from: '/docs', to: '/openapi.json' },
    { from: '/docs', to: '/docs/page.js' },
    { from: '/a/docs', to: '/openapi.json' },
    { from: '/a/docs', to: '/a/docs/page.css' },
    { from: '/a/b/c', to: '/x/y.json' },
  ])('lead from $from to $to, behind any prefix', ({ from, to }) => {
    // what the page refers to
    const [, reference = ''] = /data-document="([^"]+)"/.exec(htmlOf({ ...page, path: from, documentPath: to })) ?? []
    expect(reference).toMatch(/^\.\.?\//)
    for (const prefix of ['', '/api', '/v1/api']) {
      expect(new URL(reference, `http://h.example${prefix}${from}`).pathname).toBe(prefix + to)
    }
  })
})

describe('the header fields of the docs page', () => {
  const policyOf = (content: Content) =>
    new Map(
      pageOf(content)
        .fields['Content-Security-Policy']!.split('; ')
        .map((directive) => [directive.split(' ')[0]!, directive.split(' ').slice(1).join(' ')]),
    )

  it('ASVS 3.4.3 have a content policy that allows only what the page needs', () => {
    expect(Object.fromEntries(policyOf(page))).toEqual({
      'default-src': "'none'",
      'script-src': "'self'",
      'style-src': "'self'",
      'img-src': "'self' data:",
      'connect-src': "'self'",
      'base-uri': "'none'",
      'form-action': "'none'",
      'frame-ancestors': "'none'",
    })
  })

  it('allow test calls to the servers that the document names, and to no others', () => {
    const servers = [
      { url: 'https://api.example.com/v1' },
      { url: 'https://api.example.com/v2' },
      { url: 'http://localhost:3000' },
      { url: '/relative' },
      { url: '//scheme.example' },
      { url: 'https://{region}.example.com' },
      { url: 'javascript:alert(1)' },
      { url: 'data:text/html,x' },
      { url: 'https://' },
      { url: "https://a.example; script-src 'unsafe-inline'" },
    ]
    const allowed = "'self' https://api.example.com http://localhost:3000"
    expect(policyOf({ ...page, servers }).get('connect-src')).toBe(allowed)
  })
})

describe('the script of the docs page', () => {
  const pageScript = readFileSync(new URL('../../src/openapi/assets/page.js', import.meta.url), 'utf8')
  it('is valid JavaScript', () => {
    expect(() => new Script(pageScript)).not.toThrow()
  })

  it('A-27 does not read the query of the page, and makes no markup and no code of strings', () => {
    expect(pageScript).toContain('queryConfigEnabled: false')
    const forbidden = /location\.(?!protocol)|URLSearchParams|innerHTML|insertAdjacent|document\.write|eval|Function/
    expect(pageScript).not.toMatch(forbidden)
  })
})

// The files of the docs page: an exact list, read from the installed package (A-27, ASVS 3.6.1).
describe('its files', () => {
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

    it('is exactly what the page links to, with the media types that browsers demand', async () => {
      const types = await Promise.all(assetsIn(installed).map(async ({ name, load }) => [name, (await load()).type]))
      expect(types).toEqual([
        ['swagger-ui.css', 'text/css; charset=utf-8'],
        ['swagger-ui-bundle.js', 'text/javascript; charset=utf-8'],
        ['favicon-16x16.png', 'image/png'],
        ['favicon-32x32.png', 'image/png'],
        ['page.css', 'text/css; charset=utf-8'],
        ['page.js', 'text/javascript; charset=utf-8'],
      ])
    })

    it('has the files of the package, byte by byte', async () => {
      for (const { name, load } of assetsIn(installed).filter((one) => fromPackage.includes(one.name))) {
        expect((await load()).content.equals(readFileSync(join(installed, name))), name).toBe(true)
      }
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
})
