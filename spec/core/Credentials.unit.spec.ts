/** The syntax of each credential, as a table. */
import { either as E } from 'fp-ts'
import { BasicCredentials, BearerToken, CookieKey, HeaderKey, QueryKey } from 'koa-with-auth/fp'
import { describe, expect, it } from 'vitest'
import { AnyCredentials } from '../../src/core/Credentials.js'

const base64 = (bytes: string | Buffer) => Buffer.from(bytes).toString('base64')
const pair = (username: string, password: string) => ({ username, password })

interface Row {
  readonly description: string
  readonly input: unknown
  /** `undefined` means refused. */
  readonly expected: unknown
}

const bearer: ReadonlyArray<Row> = [
  { description: 'a token', input: 'Bearer abc', expected: 'abc' },
  { description: 'B-14 every character of a b64token', input: 'Bearer aZ09-._~+/==', expected: 'aZ09-._~+/==' },
  { description: 'B-02 the scheme in lower case', input: 'bearer abc', expected: 'abc' },
  { description: 'B-02 the scheme in upper case', input: 'BEARER abc', expected: 'abc' },
  { description: 'B-03 several spaces', input: 'Bearer    abc', expected: 'abc' },
  { description: 'B-03 a tab', input: 'Bearer\tabc', expected: undefined },
  { description: 'no space', input: 'Bearerabc', expected: undefined },
  { description: 'no token', input: 'Bearer', expected: undefined },
  { description: 'spaces instead of a token', input: 'Bearer   ', expected: undefined },
  { description: 'only padding', input: 'Bearer ==', expected: undefined },
  { description: 'padding inside', input: 'Bearer a=b', expected: undefined },
  { description: 'A-07 another scheme', input: 'Token abc', expected: undefined },
  { description: 'A-07 a longer scheme', input: 'Bearers abc', expected: undefined },
  { description: 'A-07 a token without a scheme', input: 'abc', expected: undefined },
  { description: 'A-22 two tokens joined with a comma', input: 'Bearer abc, Bearer def', expected: undefined },
  { description: 'two tokens', input: 'Bearer abc def', expected: undefined },
  { description: 'a quoted token', input: 'Bearer "abc"', expected: undefined },
  { description: 'a leading blank', input: ' Bearer abc', expected: undefined },
  { description: 'a trailing blank', input: 'Bearer abc ', expected: undefined },
  { description: 'a trailing line break', input: 'Bearer abc\n', expected: undefined },
  { description: 'A-20 a no-break space', input: 'Bearer\u00a0abc', expected: undefined },
  { description: 'a character outside of ASCII', input: 'Bearer äbc', expected: undefined },
  { description: 'a long s in the scheme is not an s', input: 'Ba\u017fic abc', expected: undefined },
  { description: 'NUL', input: 'Bearer a\0', expected: undefined },
  { description: 'sent twice', input: ['Bearer abc', 'Bearer abc'], expected: undefined },
  { description: 'nothing', input: undefined, expected: undefined },
]

const basic: ReadonlyArray<Row> = [
  {
    description: 'RFC 7617 §2, the example',
    input: 'Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==',
    expected: pair('Aladdin', 'open sesame'),
  },
  {
    description: 'RFC 7617 §2.1, the example in UTF-8',
    input: 'Basic dGVzdDoxMjPCow==',
    expected: pair('test', '123£'),
  },
  { description: 'B-02 the scheme in another case', input: `bAsIc ${base64('a:b')}`, expected: pair('a', 'b') },
  { description: 'several spaces', input: `Basic   ${base64('a:b')}`, expected: pair('a', 'b') },
  { description: 'B-20 the first colon separates', input: `Basic ${base64('a:b:c:')}`, expected: pair('a', 'b:c:') },
  { description: 'an empty user name', input: `Basic ${base64(':b')}`, expected: pair('', 'b') },
  { description: 'an empty password', input: `Basic ${base64('a:')}`, expected: pair('a', '') },
  { description: 'both empty', input: `Basic ${base64(':')}`, expected: pair('', '') },
  { description: 'B-23 no percent-decoding', input: `Basic ${base64('a%3Ab:%20')}`, expected: pair('a%3Ab', '%20') },
  { description: 'blanks belong to both parts', input: `Basic ${base64(' a : b ')}`, expected: pair(' a ', ' b ') },
  {
    description: 'B-21 a leading BOM is kept',
    input: `Basic ${base64('\ufeffadmin:b')}`,
    expected: pair('\ufeffadmin', 'b'),
  },
  { description: 'B-21 nothing is normalized', input: `Basic ${base64('e\u0301:b')}`, expected: pair('e\u0301', 'b') },
  {
    description: 'A-16 72 bytes and more',
    input: `Basic ${base64(`a:${'p'.repeat(200)}`)}`,
    expected: pair('a', 'p'.repeat(200)),
  },
  {
    description: 'A-29 __proto__ as a name',
    input: `Basic ${base64('__proto__:b')}`,
    expected: pair('__proto__', 'b'),
  },
  { description: 'no colon', input: `Basic ${base64('ab')}`, expected: undefined },
  { description: 'no base64', input: 'Basic', expected: undefined },
  { description: 'only spaces', input: 'Basic  ', expected: undefined },
  { description: 'only padding', input: 'Basic ==', expected: undefined },
  { description: 'B-23 without a scheme', input: base64('a:b'), expected: undefined },
  { description: 'without a space', input: `Basic${base64('a:b')}`, expected: undefined },
  { description: 'a tab', input: `Basic\t${base64('a:b')}`, expected: undefined },
  { description: 'another scheme', input: `Bearer ${base64('a:b')}`, expected: undefined },
  { description: 'B-22 a missing padding', input: 'Basic YTpiYw', expected: undefined },
  { description: 'B-22 too much padding', input: `Basic ${base64('a:b')}=`, expected: undefined },
  { description: 'B-22 stray bits', input: 'Basic YTpiYx==', expected: undefined },
  { description: 'B-22 a foreign character', input: 'Basic YTpi*A==', expected: undefined },
  { description: 'B-22 a blank inside', input: 'Basic YTpi YTpi', expected: undefined },
  {
    description: 'B-22 base64url',
    input: `Basic ${base64('a:b\u00ff\u00fe?>').replaceAll('+', '-').replaceAll('/', '_')}_`,
    expected: undefined,
  },
  { description: 'a trailing line break', input: `Basic ${base64('a:b')}\n`, expected: undefined },
  { description: 'B-20 NUL in the user name', input: `Basic ${base64('a\0:b')}`, expected: undefined },
  { description: 'B-20 LF in the password', input: `Basic ${base64('a:b\n')}`, expected: undefined },
  { description: 'B-20 DEL', input: `Basic ${base64('a:\x7f')}`, expected: undefined },
  {
    description: 'B-21 Latin-1 instead of UTF-8',
    input: `Basic ${base64(Buffer.from('a:é', 'latin1'))}`,
    expected: undefined,
  },
  {
    description: 'B-21 overlong UTF-8',
    input: `Basic ${base64(Buffer.from([0x61, 0x3a, 0xc0, 0xaf]))}`,
    expected: undefined,
  },
  {
    description: 'B-21 a surrogate in UTF-8',
    input: `Basic ${base64(Buffer.from([0x61, 0x3a, 0xed, 0xa0, 0x80]))}`,
    expected: undefined,
  },
  { description: 'sent twice', input: ['Basic YTpi', 'Basic YTpi'], expected: undefined },
]

const query: ReadonlyArray<Row> = [
  { description: 'any string', input: ' ä\u0001;,"', expected: ' ä\u0001;,"' },
  { description: 'empty', input: '', expected: undefined },
  { description: 'a lone surrogate', input: 'a\udc00', expected: undefined },
  { description: 'sent twice', input: ['a', 'a'], expected: undefined },
]

const header: ReadonlyArray<Row> = [
  { description: 'ASCII', input: 'k1-"x";,=', expected: 'k1-"x";,=' },
  { description: 'one character', input: 'k', expected: 'k' },
  { description: 'a blank inside', input: 'a b\tc', expected: 'a b\tc' },
  { description: 'bytes above 127 as Latin-1', input: 'k\u00ff', expected: 'k\u00ff' },
  { description: 'empty', input: '', expected: undefined },
  { description: 'a leading blank', input: ' a', expected: undefined },
  { description: 'a trailing tab', input: 'a\t', expected: undefined },
  { description: 'a line break', input: 'a\r\nb', expected: undefined },
  { description: 'a trailing line break', input: 'a\n', expected: undefined },
  { description: 'DEL', input: 'a\x7f', expected: undefined },
  { description: 'an empty field', input: 'a\u0100', expected: undefined },
  { description: 'sent twice', input: ['a', 'a'], expected: undefined },
]

const cookie: ReadonlyArray<Row> = [
  { description: 'ASCII', input: 'k1=x,y', expected: 'k1=x,y' },
  { description: 'quotes around it', input: '"k1"', expected: 'k1' },
  { description: 'only one pair of quotes is removed', input: '""k1""', expected: '"k1"' },
  { description: 'an opening quote without a closing one stays (D-S14)', input: '"k1', expected: '"k1' },
  { description: 'a single quote character', input: '"', expected: '"' },
  { description: 'no percent-decoding', input: 'k%31', expected: 'k%31' },
  { description: 'bytes above 127 as Latin-1', input: 'k\u00ff', expected: 'k\u00ff' },
  { description: 'empty', input: '', expected: undefined },
  { description: 'empty quotes', input: '""', expected: undefined },
  { description: 'a leading blank', input: ' k', expected: undefined },
  { description: 'a trailing blank', input: 'k ', expected: undefined },
  { description: 'a blank inside quotes, at the end', input: '"k "', expected: undefined },
  { description: 'a semicolon', input: 'a;b', expected: undefined },
  { description: 'a tab', input: 'a\tb', expected: undefined },
  { description: 'sent twice', input: ['a', 'a'], expected: undefined },
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
    { description: 'Bearer', input: BearerToken.encode('abc'), expected: 'Bearer abc' },
    { description: 'Basic', input: BasicCredentials.encode(pair('a', 'b')), expected: 'Basic YTpi' },
    { description: 'a cookie whose value has quotes', input: CookieKey.encode('"a"'), expected: '""a""' },
    { description: 'a cookie', input: CookieKey.encode('a'), expected: 'a' },
    { description: 'a cookie that begins with a quote', input: CookieKey.encode('"a'), expected: '"a' },
    { description: 'a cookie that ends with a quote', input: CookieKey.encode('a"'), expected: 'a"' },
    { description: 'a cookie that is one quote', input: CookieKey.encode('"'), expected: '"' },
    { description: 'a query key', input: QueryKey.encode('a b'), expected: 'a b' },
    { description: 'a header key', input: HeaderKey.encode('a b'), expected: 'a b' },
    {
      description: 'Basic with UTF-8',
      input: BasicCredentials.encode(pair('ä', '£')),
      expected: `Basic ${base64('ä:£')}`,
    },
  ])('$description', ({ input, expected }) => {
    expect(input).toBe(expected)
  })
})

describe('AnyCredentials', () => {
  it.each([undefined, null, '', [], ['a', 'a']])('refuses %j', (input) => {
    expect(E.isLeft(AnyCredentials.decode(input))).toBe(true)
  })

  it.each([0, false, ' ', {}, 'abc'])('accepts %j as it is', (input) => {
    expect(AnyCredentials.decode(input)).toStrictEqual(E.right(input))
  })

  it('has this name in messages', () => expect(AnyCredentials.name).toBe('AnyCredentials'))
})

describe('is: a decoded credential', () => {
  const no: ReadonlyArray<unknown> = [undefined, null, 1, true, '', {}, [], () => 'abc', Object('abc')]

  it.each(Object.entries({ BearerToken, QueryKey, HeaderKey, CookieKey }))('%s: accepts a string', (name, codec) => {
    expect(codec.name).toBe(name)
    expect(codec.is('abc')).toBe(true)
    for (const value of no) expect([value, codec.is(value)]).toStrictEqual([value, false])
  })

  it.each(['a b', 'abc ', 'a=b', '=', 'abc\n', 'Bearer abc', 'ä'])('BearerToken: refuses %j', (value) => {
    expect(BearerToken.is(value)).toBe(false)
    expect(BearerToken.decode(`Bearer ${value}`)).toMatchObject({ _tag: 'Left' })
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

it.each(Object.entries({ BasicCredentials, BearerToken, QueryKey, HeaderKey, CookieKey }))(
  '%s: a refusal says that the value is not well-formed, and does not contain it',
  (_, codec) => {
    expect(codec.decode('')).toStrictEqual(E.left([{ value: undefined, context: [], message: 'not well-formed' }]))
  },
)
