/** The laws of a ceremony (C-01): random walks over tabs, browsers, kinds, clocks, outages and keys, beside a model. */
import fc from 'fast-check'
import { localPath } from 'koa-with-auth/sign-in'
import { describe, expect, it } from 'vitest'
import { ceremonies } from '../../src/sign-in/ceremony.js'
import { ceremonyLaws } from '../support/models/ceremonyModel.js'

describe('C-01 the laws of a ceremony', () => {
  it.each(Object.keys(ceremonyLaws))('%s', async (name) => {
    await ceremonyLaws[name]!(ceremonies)
  })
})

describe('C-01 the return path', () => {
  const bad: ReadonlyArray<unknown> = [
    ...[
      'https://e.example',
      '//e.example',
      '/\\e.example',
      '/\t/e.example',
      '\\\\e.example',
      '/%2f%2fe.example',
      '/%2F/e',
    ],
    ...['/%5ce.example', '/%5C', '/ /e', 'javascript:alert(1)', '', '/a\r\nSet-Cookie: x', '/%0d%0a', '/..//e.example'],
    ...[
      '/.//e.example',
      '/%2e%2e//e.example',
      'http:e.example',
      'https:/e',
      '/\u2028/e',
      '///e',
      '/ä',
      '/%00',
      '/%1f',
      '/%7f',
    ],
    ...[undefined, null, {}, ['/a'], 7, `/${'a'.repeat(2000)}`, 'basket', '?a', '#a', '/a\u0000', '/\u00a0'],
  ]
  it.each(bad.map((one) => [one]))('%j is /', (one) => {
    expect(localPath(one)).toBe('/')
  })

  it.each(['/', '/a/b?c=%2F&d=//x', '/a#f', '/a%20b', `/${'a'.repeat(1999)}`, '/a?x=/%5c'])('%s stays', (one) => {
    expect(localPath(one)).toBe(one)
  })

  it('is of this origin for the URL parser, whatever it is made of', () => {
    const piece = fc.constantFrom(
      ...['/', '\\', '.', '..', '%2e', '%2f', '%5C', '\t', ':', '@', 'e.example', '?', '#', 'a', ';'],
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
        const path = localPath(`/${pieces.join('')}`)
        const base = 'https://shop.example'
        expect(new URL(path, base).origin).toBe(base)
        expect(new URL(new URL(path, base).pathname, base).origin).toBe(base)
      }),
    )
  })
})
