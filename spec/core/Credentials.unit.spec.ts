/** The syntax of each credential, as a table. */
import { either as E } from 'fp-ts'
import { BasicCredentials, BearerToken, CookieKey, HeaderKey, QueryKey } from 'koa-with-auth/fp'
import { describe, expect, it } from 'vitest'
import { row } from '../support/models/row.js'

const base64 = (bytes: string | Buffer) => Buffer.from(bytes).toString('base64')
const pair = (username: string, password: string) => ({ username, password })

interface Row {
  readonly description: string
  readonly input: unknown
  /** `undefined` means refused. */
  readonly expected: unknown
}

const bearer: ReadonlyArray<Row> = [
  row('a token', 'Bearer abc', 'abc'),
  row('B-14 every character of a b64token', 'Bearer aZ09-._~+/==', 'aZ09-._~+/=='),
  row('B-02 the scheme in lower case', 'bearer abc', 'abc'),
  row('B-02 the scheme in upper case', 'BEARER abc', 'abc'),
  row('B-03 several spaces', 'Bearer    abc', 'abc'),
  row('B-03 a tab', 'Bearer\tabc', undefined),
  row('no space', 'Bearerabc', undefined),
  row('no token', 'Bearer', undefined),
  row('spaces instead of a token', 'Bearer   ', undefined),
  row('only padding', 'Bearer ==', undefined),
  row('padding inside', 'Bearer a=b', undefined),
  row('A-07 another scheme', 'Token abc', undefined),
  row('A-07 a longer scheme', 'Bearers abc', undefined),
  row('A-07 a token without a scheme', 'abc', undefined),
  row('A-22 two tokens joined with a comma', 'Bearer abc, Bearer def', undefined),
  row('two tokens', 'Bearer abc def', undefined),
  row('a quoted token', 'Bearer "abc"', undefined),
  row('a leading blank', ' Bearer abc', undefined),
  row('a trailing blank', 'Bearer abc ', undefined),
  row('a trailing line break', 'Bearer abc\n', undefined),
  row('A-20 a no-break space', 'Bearer\u00a0abc', undefined),
  row('a character outside of ASCII', 'Bearer äbc', undefined),
  row('a long s in the scheme is not an s', 'Ba\u017fic abc', undefined),
  row('NUL', 'Bearer a\0', undefined),
  row('sent twice', ['Bearer abc', 'Bearer abc'], undefined),
  row('nothing', undefined, undefined),
]

const basic: ReadonlyArray<Row> = [
  row('RFC 7617 §2, the example', 'Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==', pair('Aladdin', 'open sesame')),
  row('RFC 7617 §2.1, the example in UTF-8', 'Basic dGVzdDoxMjPCow==', pair('test', '123£')),
  row('B-02 the scheme in another case', `bAsIc ${base64('a:b')}`, pair('a', 'b')),
  row('several spaces', `Basic   ${base64('a:b')}`, pair('a', 'b')),
  row('B-20 the first colon separates', `Basic ${base64('a:b:c:')}`, pair('a', 'b:c:')),
  row('an empty user name', `Basic ${base64(':b')}`, pair('', 'b')),
  row('an empty password', `Basic ${base64('a:')}`, pair('a', '')),
  row('both empty', `Basic ${base64(':')}`, pair('', '')),
  row('B-23 no percent-decoding', `Basic ${base64('a%3Ab:%20')}`, pair('a%3Ab', '%20')),
  row('blanks belong to both parts', `Basic ${base64(' a : b ')}`, pair(' a ', ' b ')),
  row('B-21 a leading BOM is kept', `Basic ${base64('\ufeffadmin:b')}`, pair('\ufeffadmin', 'b')),
  row('B-21 nothing is normalized', `Basic ${base64('e\u0301:b')}`, pair('e\u0301', 'b')),
  row('A-16 72 bytes and more', `Basic ${base64(`a:${'p'.repeat(200)}`)}`, pair('a', 'p'.repeat(200))),
  row('A-29 __proto__ as a name', `Basic ${base64('__proto__:b')}`, pair('__proto__', 'b')),
  row('no colon', `Basic ${base64('ab')}`, undefined),
  row('no base64', 'Basic', undefined),
  row('only spaces', 'Basic  ', undefined),
  row('only padding', 'Basic ==', undefined),
  row('B-23 without a scheme', base64('a:b'), undefined),
  row('without a space', `Basic${base64('a:b')}`, undefined),
  row('a tab', `Basic\t${base64('a:b')}`, undefined),
  row('another scheme', `Bearer ${base64('a:b')}`, undefined),
  row('B-22 a missing padding', 'Basic YTpiYw', undefined),
  row('B-22 too much padding', `Basic ${base64('a:b')}=`, undefined),
  row('B-22 stray bits', 'Basic YTpiYx==', undefined),
  row('B-22 a foreign character', 'Basic YTpi*A==', undefined),
  row('B-22 a blank inside', 'Basic YTpi YTpi', undefined),
  row('B-22 base64url', `Basic ${base64('a:b\u00ff\u00fe?>').replaceAll('+', '-').replaceAll('/', '_')}_`, undefined),
  row('a trailing line break', `Basic ${base64('a:b')}\n`, undefined),
  row('B-20 NUL in the user name', `Basic ${base64('a\0:b')}`, undefined),
  row('B-20 LF in the password', `Basic ${base64('a:b\n')}`, undefined),
  row('B-20 DEL', `Basic ${base64('a:\x7f')}`, undefined),
  row('B-21 Latin-1 instead of UTF-8', `Basic ${base64(Buffer.from('a:é', 'latin1'))}`, undefined),
  row('B-21 overlong UTF-8', `Basic ${base64(Buffer.from([0x61, 0x3a, 0xc0, 0xaf]))}`, undefined),
  row('B-21 a surrogate in UTF-8', `Basic ${base64(Buffer.from([0x61, 0x3a, 0xed, 0xa0, 0x80]))}`, undefined),
  row('sent twice', ['Basic YTpi', 'Basic YTpi'], undefined),
]

const query: ReadonlyArray<Row> = [
  row('any string', ' ä\u0001;,"', ' ä\u0001;,"'),
  row('empty', '', undefined),
  row('a lone surrogate', 'a\udc00', undefined),
  row('sent twice', ['a', 'a'], undefined),
]

const header: ReadonlyArray<Row> = [
  row('ASCII', 'k1-"x";,=', 'k1-"x";,='),
  row('one character', 'k', 'k'),
  row('a blank inside', 'a b\tc', 'a b\tc'),
  row('bytes above 127 as Latin-1', 'k\u00ff', 'k\u00ff'),
  row('empty', '', undefined),
  row('a leading blank', ' a', undefined),
  row('a trailing tab', 'a\t', undefined),
  row('a line break', 'a\r\nb', undefined),
  row('a trailing line break', 'a\n', undefined),
  row('DEL', 'a\x7f', undefined),
  row('an empty field', 'a\u0100', undefined),
  row('sent twice', ['a', 'a'], undefined),
]

const cookie: ReadonlyArray<Row> = [
  row('ASCII', 'k1=x,y', 'k1=x,y'),
  row('quotes around it', '"k1"', 'k1'),
  row('only one pair of quotes is removed', '""k1""', '"k1"'),
  row('an opening quote without a closing one stays (D-S14)', '"k1', '"k1'),
  row('a single quote character', '"', '"'),
  row('no percent-decoding', 'k%31', 'k%31'),
  row('bytes above 127 as Latin-1', 'k\u00ff', 'k\u00ff'),
  row('empty', '', undefined),
  row('empty quotes', '""', undefined),
  row('a leading blank', ' k', undefined),
  row('a trailing blank', 'k ', undefined),
  row('a blank inside quotes, at the end', '"k "', undefined),
  row('a semicolon', 'a;b', undefined),
  row('a tab', 'a\tb', undefined),
  row('sent twice', ['a', 'a'], undefined),
]

describe.each([
  { codec: BearerToken, rows: bearer },
  { codec: BasicCredentials, rows: basic },
  { codec: QueryKey, rows: query },
  { codec: HeaderKey, rows: header },
  { codec: CookieKey, rows: cookie },
])('$codec.name', ({ codec, rows }) => {
  it.each(rows)('$description', ({ input, expected }) => {
    const decoded = codec.decode(input)
    if (expected === undefined) expect(E.isLeft(decoded)).toBe(true)
    else expect(decoded).toStrictEqual(E.right(expected))
  })
})

describe('encode', () => {
  it.each([
    row('Bearer', BearerToken.encode('abc'), 'Bearer abc'),
    row('Basic', BasicCredentials.encode(pair('a', 'b')), 'Basic YTpi'),
    row('a cookie whose value has quotes', CookieKey.encode('"a"'), '""a""'),
    row('a cookie', CookieKey.encode('a'), 'a'),
    row('Basic with UTF-8', BasicCredentials.encode(pair('ä', '£')), `Basic ${base64('ä:£')}`),
  ])('$description', ({ input, expected }) => {
    expect(input).toBe(expected)
  })
})

describe('is: a decoded credential', () => {
  const no: ReadonlyArray<unknown> = [undefined, null, 1, true, '', {}, [], () => 'abc', Object('abc')]

  it.each(Object.entries({ BearerToken, QueryKey, HeaderKey, CookieKey }))('%s: accepts a string', (name, codec) => {
    expect(codec.name).toBe(name)
    expect(codec.is('abc')).toBe(true)
    for (const value of no) expect([value, codec.is(value)]).toStrictEqual([value, false])
  })

  it('BasicCredentials: accepts a pair of strings', () => {
    expect(BasicCredentials.name).toBe('BasicCredentials')
    expect(BasicCredentials.is(pair('anna', 'pass:word'))).toBe(true)
    expect(BasicCredentials.is(pair('', ''))).toBe(true)
  })

  it.each<[string, unknown]>([
    ...no.map((value): [string, unknown] => [`${typeof value} ${String(value)}`, value]),
    ['a function with both', Object.assign(() => 1, pair('anna', 'b'))],
    ['no user name', { password: 'b' }],
    ['no password', { username: 'anna' }],
    ['a user name that is an array', { username: ['anna'], password: 'b' }],
    ['a password that is a number', { username: 'anna', password: 1 }],
    ['a password that is a String object', { username: 'anna', password: Object('b') }],
    ['a colon in the user name', pair('an:na', 'b')],
    ['a control character in the user name', pair('an\0na', 'b')],
    ['a control character in the password', pair('anna', 'b\x7f')],
    ['a lone surrogate in the user name', pair('\ud800', 'b')],
    ['a lone surrogate in the password', pair('anna', '\udc00')],
  ])('BasicCredentials: refuses %s', (_, value) => {
    expect(BasicCredentials.is(value)).toBe(false)
  })
})

it.each(['xBasic YTpi', ' Basic YTpi', 'Basic YTpi ', 'Basic YTpi\nA: b'])('Basic: refuses %j', (field) => {
  expect(BasicCredentials.decode(field)).toMatchObject({ _tag: 'Left' })
})
