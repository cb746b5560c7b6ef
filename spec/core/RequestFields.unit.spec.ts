/** Where credentials are: what a reader finds, what counts as absent, and what counts as sent twice. */
import { option as O } from 'fp-ts'
import { fromAuthorization, fromCookie, fromHeader, fromQuery, type Sent } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { mockRequest, type RequestSpec } from 'koa-with-auth/testing'
import { expectLinear } from '../support/runs/growth.js'
import { row } from '../support/models/row.js'

interface Row {
  readonly description: string
  readonly input: NonNullable<RequestSpec['fields']>
  /** `undefined` means absent. */
  readonly expected: Sent | undefined
}

const field = (name: string, value: string) => [name, value] as const
const found = O.fromNullable<Sent | undefined>

describe('fromHeader', () => {
  const rows: ReadonlyArray<Row> = [
    row('absent', [['X-Other', 'a']], undefined),
    row('RFC 9110 §5.1 any letter case', [['x-kEY', 'a']], 'a'),
    row('empty', [['X-Key', '']], ''),
    row('A-20 blanks around the value are not a part of it', [['X-Key', ' \ta b\t ']], 'a b'),
    row('A-20 a no-break space is a part of it', [['X-Key', '\u00a0a\u00a0']], '\u00a0a\u00a0'),
    row('A-22 sent twice', [field('X-Key', 'a'), field('x-key', 'b')], ['a', 'b']),
    row('A-22 the same value sent twice', [field('X-Key', 'a'), field('X-Key', 'a')], ['a', 'a']),
    row('A-22 sent three times', [field('X-Key', ''), field('X-Key', 'b'), field('X-KEY', 'c')], ['', 'b', 'c']),
    row('A-18 sent beside __proto__', [field('__proto__', 'x'), field('X-Key', 'a')], 'a'),
    row('a value that looks like a name', [field('X-Other', 'X-Key'), field('a', 'b')], undefined),
    row('A-22 joined by a proxy: one value, unchanged', [['X-Key', 'a, b']], 'a, b'),
  ]
  it.each(rows)('$description', ({ input, expected }) => {
    expect(fromHeader('X-Key')(mockRequest({ fields: input }))).toStrictEqual(found(expected))
  })

  it('A-18 a header named __proto__ is never found, because Node does not put it into `headers`', () => {
    expect(fromHeader('__proto__')(mockRequest({ fields: [['__proto__', 'a']] }))).toStrictEqual(O.none)
    expect(fromHeader('__proto__')(mockRequest())).toStrictEqual(O.none)
  })

  it.each(['constructor', 'toString'])('A-18 the name %s does not find what objects inherit', (name) => {
    expect(fromHeader(name)(mockRequest())).toStrictEqual(O.none)
    expect(fromHeader(name)(mockRequest({ fields: [[name, 'a']] }))).toStrictEqual(O.some('a'))
  })

  describe('R07 a field that upstream middleware has changed', () => {
    const changed = (
      fields: NonNullable<RequestSpec['fields']>,
      change: (headers: Record<string, unknown>) => void,
    ) => {
      const request = mockRequest({ fields })
      change(request.req.headers)
      return fromHeader('X-Key')(request)
    }
    const twice: NonNullable<RequestSpec['fields']> = [field('X-Key', 'a'), field('x-key', 'b')]

    it('has the new value if it was replaced or added', () => {
      const put = (headers: Record<string, unknown>) => void (headers['x-key'] = ' c ')
      expect(changed([['X-Key', 'a']], put)).toStrictEqual(O.some('c'))
      expect(changed([], put)).toStrictEqual(O.some('c'))
    })

    it('is still refused if the client sent it twice', () => {
      expect(changed(twice, (headers) => (headers['x-key'] = 'b'))).toStrictEqual(O.some(['a', 'b']))
    })

    it('is several values if it is an array, and no credential if it is neither a string nor an array', () => {
      expect(changed([], (headers) => (headers['x-key'] = ['a ', 'b']))).toStrictEqual(O.some(['a', 'b']))
      expect(changed([], (headers) => (headers['x-key'] = 1))).toStrictEqual(O.some([]))
    })
  })

  it('R14 20,000 lines of one field are read in linear time', () => {
    const withLines = (count: number) => {
      const request = mockRequest()
      Object.assign(request.req, { rawHeaders: Array.from({ length: 2 * count }, (_, at) => (at % 2 ? '1' : 'x-key')) })
      request.req.headers['x-key'] = '1'
      return request
    }
    expect(fromHeader('X-Key')(withLines(20_000))).toStrictEqual(O.some(Array.from({ length: 20_000 }, () => '1')))
    expectLinear(2500, (count) => {
      const request = withLines(count)
      return () => fromHeader('X-Key')(request)
    })
  })
})

describe('authorization', () => {
  const line = (value: string) => field('Authorization', value)
  const rows: ReadonlyArray<Row> = [
    row('absent', [], undefined),
    row('with this scheme', [line('Bearer a')], 'Bearer a'),
    row('B-02 with the scheme in any letter case', [line('bEARER a')], 'bEARER a'),
    row('with another scheme: absent', [line('Basic YTpi')], undefined),
    row('A-07 with a longer scheme: absent', [line('Bearers a')], undefined),
    row('with a scheme that continues with a special character: absent', [line('Bearer-x a')], undefined),
    row('only the scheme: present, and the codec refuses it', [line('Bearer')], 'Bearer'),
    row('a tab after the scheme: present, and the codec refuses it', [line('Bearer\ta')], 'Bearer\ta'),
    row('an empty field: absent', [line('')], undefined),
    row('A-22 two lines', [line('Bearer a'), line('Bearer b')], ['Bearer a', 'Bearer b']),
    row('A-22 two lines of two schemes', [line('Basic YTpi'), line('Bearer a')], ['Basic YTpi', 'Bearer a']),
    row('Proxy-Authorization is another field', [['Proxy-Authorization', 'Bearer a']], undefined),
  ]
  it.each(rows)('$description', ({ input, expected }) => {
    expect(fromAuthorization('Bearer')(mockRequest({ fields: input }))).toStrictEqual(found(expected))
  })
})

describe('fromQuery', () => {
  it.each([
    row('no query', '/', undefined),
    row('an empty query', '/?', undefined),
    row('present', '/?key=a', 'a'),
    row('empty', '/?key=', ''),
    row('without =', '/?key', ''),
    row('another letter case', '/?Key=a', undefined),
    row('percent-decoded once', '/?key=%2525', '%25'),
    row('its name is percent-decoded', '/?k%65y=a', 'a'),
    row('A-22 sent twice', '/?key=a&key=b', ['a', 'b']),
    row('A-22 the same value sent twice', '/?key=a&k%65y=a', ['a', 'a']),
    row('a name with brackets is another name', '/?key[]=a', undefined),
    row('plus is a blank', '/?key=a+b', 'a b'),
    row('invalid UTF-8', '/?key=%ff', '\ufffd'),
    row('an invalid escape stays', '/?key=%zz', '%zz'),
    row('D-K6 a second question mark belongs to the name', '/??key=a', undefined),
    row('after a fragment', '/#?key=a', undefined),
  ])('$description', ({ input, expected }) => {
    expect(fromQuery('key')(mockRequest({ url: input }))).toStrictEqual(found(expected))
  })

  it.each(['constructor', '__proto__', 'toString', 'length', '0'])('A-19 the name %s is an ordinary name', (name) => {
    expect(fromQuery(name)(mockRequest({ url: '/?a=b' }))).toStrictEqual(O.none)
    expect(fromQuery(name)(mockRequest({ url: `/?${name}=k` }))).toStrictEqual(O.some('k'))
  })
})

describe('cookie', () => {
  const rows: ReadonlyArray<Row> = [
    row('no field', [], undefined),
    row('alone', [['Cookie', 'key=a']], 'a'),
    row('among other cookies', [['Cookie', 'x=1; key=a; y=2']], 'a'),
    row('without a blank after the semicolon', [['Cookie', 'x=1;key=a']], 'a'),
    row('empty', [['Cookie', 'key=']], ''),
    row('B-30 another letter case', [['Cookie', 'Key=a']], undefined),
    row('a longer name', [['Cookie', 'xkey=a; key2=b']], undefined),
    row('the name as a value', [['Cookie', 'x=key=a']], undefined),
    row('without =', [['Cookie', 'key']], undefined),
    row('= in the value', [['Cookie', 'key=a=b']], 'a=b'),
    row('quotes stay, because the codec removes them', [['Cookie', 'key="a"']], '"a"'),
    row('no percent-decoding', [['Cookie', 'key=%61']], '%61'),
    row('two blanks before the name: another cookie', [['Cookie', 'x=1;  key=a']], undefined),
    row('A-20 a tab before the name: another cookie', [['Cookie', 'x=1;\tkey=a']], undefined),
    row('A-20 a no-break space before the name: another cookie', [['Cookie', '\u00a0key=a']], undefined),
    row('a blank before =: another cookie', [['Cookie', 'key =a']], undefined),
    row('a blank after =: another cookie', [['Cookie', 'key= a']], undefined),
    row('A-21 sent twice', [['Cookie', 'key=a; key=b']], ['a', 'b']),
    row('A-21 the same value sent twice', [['Cookie', 'key=a; key=a']], ['a', 'a']),
    row('A-21 in two lines', [field('Cookie', 'key=a'), field('Cookie', 'key=b')], ['a', 'b']),
  ]
  it.each(rows)('$description', ({ input, expected }) => {
    expect(fromCookie('key')(mockRequest({ fields: input }))).toStrictEqual(found(expected))
  })
})

describe('unusual fields', () => {
  it('a value of blanks only is empty', () => {
    for (const blanks of [' ', '\t', ' \t ']) {
      expect(fromHeader('X-Key')(mockRequest({ fields: [['X-Key', blanks]] }))).toStrictEqual(O.some(''))
    }
  })

  it('a Cookie field that an adapter gives as an array is read as one field', () => {
    const request = mockRequest()
    Object.assign(request.req.headers, { cookie: ['key=a', 'key=b'] })
    expect(fromCookie('key')(request)).toStrictEqual(O.some(['a', 'b']))
  })
})
