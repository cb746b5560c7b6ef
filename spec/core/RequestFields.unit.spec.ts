/** Where credentials are: what a reader finds, what counts as absent, and what counts as sent twice. */
import { option as O } from 'fp-ts'
import { fromAuthorization, fromCookie, fromHeader, fromQuery, type Sent } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { mockRequest, type RequestSpec } from 'koa-with-auth/testing'
import { expectLinear } from '../support/runs/growth.js'

interface Row {
  readonly description: string
  readonly input: NonNullable<RequestSpec['fields']>
  /** `undefined` means absent. */
  readonly expected: Sent | undefined
}

const found = O.fromNullable<Sent | undefined>

describe('fromHeader', () => {
  const rows: ReadonlyArray<Row> = [
    { description: 'absent', input: [['X-Other', 'a']], expected: undefined },
    { description: 'RFC 9110 §5.1 any letter case', input: [['x-kEY', 'a']], expected: 'a' },
    { description: 'empty', input: [['X-Key', '']], expected: '' },
    {
      description: 'A-20 blanks around the value are not a part of it',
      input: [['X-Key', ' \ta b\t ']],
      expected: 'a b',
    },
    {
      description: 'A-20 a no-break space is a part of it',
      input: [['X-Key', '\u00a0a\u00a0']],
      expected: '\u00a0a\u00a0',
    },
    {
      description: 'A-22 sent twice',
      input: [
        ['X-Key', 'a'],
        ['x-key', 'b'],
      ],
      expected: ['a', 'b'],
    },
    {
      description: 'A-22 the same value sent twice',
      input: [
        ['X-Key', 'a'],
        ['X-Key', 'a'],
      ],
      expected: ['a', 'a'],
    },
    {
      description: 'A-22 sent three times',
      input: [
        ['X-Key', ''],
        ['X-Key', 'b'],
        ['X-KEY', 'c'],
      ],
      expected: ['', 'b', 'c'],
    },
    {
      description: 'A-18 sent beside __proto__',
      input: [
        ['__proto__', 'x'],
        ['X-Key', 'a'],
      ],
      expected: 'a',
    },
    {
      description: 'a value that looks like a name',
      input: [
        ['X-Other', 'X-Key'],
        ['a', 'b'],
      ],
      expected: undefined,
    },
    { description: 'A-22 joined by a proxy: one value, unchanged', input: [['X-Key', 'a, b']], expected: 'a, b' },
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
    const twice: NonNullable<RequestSpec['fields']> = [
      ['X-Key', 'a'],
      ['x-key', 'b'],
    ]

    it('is absent if it was removed, however often it was sent', () => {
      const take = (headers: Record<string, unknown>) => void delete headers['x-key']
      expect(changed([['X-Key', 'a']], take)).toStrictEqual(O.none)
      expect(changed(twice, take)).toStrictEqual(O.none)
      expect(changed([['X-Key', 'a']], (headers) => (headers['x-key'] = undefined))).toStrictEqual(O.none)
    })

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

    it('comes from `headers` if there are no raw lines, as in requests of serverless adapters', () => {
      for (const rawHeaders of [[], undefined]) {
        const request = mockRequest({
          fields: [
            ['X-Key', 'a'],
            ['Authorization', 'Bearer t'],
            ['Cookie', 'key=c'],
          ],
        })
        // as such an adapter does; Node would make `headers` of the raw lines when it is first read
        Object.assign(request.req, { headers: { ...request.req.headers }, rawHeaders })
        expect(fromHeader('X-Key')(request)).toStrictEqual(O.some('a'))
        expect(fromAuthorization('Bearer')(request)).toStrictEqual(O.some('Bearer t'))
        expect(fromCookie('key')(request)).toStrictEqual(O.some('c'))
      }
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
  const line = (value: string) => ['Authorization', value] as const
  const rows: ReadonlyArray<Row> = [
    { description: 'absent', input: [], expected: undefined },
    { description: 'with this scheme', input: [line('Bearer a')], expected: 'Bearer a' },
    { description: 'B-02 with the scheme in any letter case', input: [line('bEARER a')], expected: 'bEARER a' },
    { description: 'with another scheme: absent', input: [line('Basic YTpi')], expected: undefined },
    { description: 'A-07 with a longer scheme: absent', input: [line('Bearers a')], expected: undefined },
    {
      description: 'with a scheme that continues with a special character: absent',
      input: [line('Bearer-x a')],
      expected: undefined,
    },
    { description: 'only the scheme: present, and the codec refuses it', input: [line('Bearer')], expected: 'Bearer' },
    {
      description: 'a tab after the scheme: present, and the codec refuses it',
      input: [line('Bearer\ta')],
      expected: 'Bearer\ta',
    },
    { description: 'an empty field: absent', input: [line('')], expected: undefined },
    { description: 'A-22 two lines', input: [line('Bearer a'), line('Bearer b')], expected: ['Bearer a', 'Bearer b'] },
    {
      description: 'A-22 two lines of two schemes: sent twice',
      input: [line('Basic YTpi'), line('Bearer a')],
      expected: ['Basic YTpi', 'Bearer a'],
    },
    {
      description: 'Proxy-Authorization is another field',
      input: [['Proxy-Authorization', 'Bearer a']],
      expected: undefined,
    },
  ]
  it.each(rows)('$description', ({ input, expected }) => {
    expect(fromAuthorization('Bearer')(mockRequest({ fields: input }))).toStrictEqual(found(expected))
  })
})

describe('fromQuery', () => {
  it.each([
    { description: 'no query', input: '/', expected: undefined },
    { description: 'an empty query', input: '/?', expected: undefined },
    { description: 'present', input: '/?key=a', expected: 'a' },
    { description: 'empty', input: '/?key=', expected: '' },
    { description: 'without =', input: '/?key', expected: '' },
    { description: 'another letter case', input: '/?Key=a', expected: undefined },
    { description: 'percent-decoded once', input: '/?key=%2525', expected: '%25' },
    { description: 'its name is percent-decoded', input: '/?k%65y=a', expected: 'a' },
    { description: 'A-22 sent twice', input: '/?key=a&key=b', expected: ['a', 'b'] },
    { description: 'A-22 the same value sent twice', input: '/?key=a&k%65y=a', expected: ['a', 'a'] },
    { description: 'a name with brackets is another name', input: '/?key[]=a', expected: undefined },
    { description: 'plus is a blank', input: '/?key=a+b', expected: 'a b' },
    { description: 'invalid UTF-8', input: '/?key=%ff', expected: '\ufffd' },
    { description: 'an invalid escape stays', input: '/?key=%zz', expected: '%zz' },
    { description: 'D-K6 a second question mark belongs to the name', input: '/??key=a', expected: undefined },
    { description: 'after a fragment', input: '/#?key=a', expected: undefined },
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
    { description: 'no field', input: [], expected: undefined },
    { description: 'alone', input: [['Cookie', 'key=a']], expected: 'a' },
    { description: 'among other cookies', input: [['Cookie', 'x=1; key=a; y=2']], expected: 'a' },
    { description: 'without a blank after the semicolon', input: [['Cookie', 'x=1;key=a']], expected: 'a' },
    { description: 'empty', input: [['Cookie', 'key=']], expected: '' },
    { description: 'B-30 another letter case', input: [['Cookie', 'Key=a']], expected: undefined },
    { description: 'a longer name', input: [['Cookie', 'xkey=a; key2=b']], expected: undefined },
    { description: 'the name as a value', input: [['Cookie', 'x=key=a']], expected: undefined },
    { description: 'without =', input: [['Cookie', 'key']], expected: undefined },
    { description: '= in the value', input: [['Cookie', 'key=a=b']], expected: 'a=b' },
    { description: 'quotes stay, because the codec removes them', input: [['Cookie', 'key="a"']], expected: '"a"' },
    { description: 'no percent-decoding', input: [['Cookie', 'key=%61']], expected: '%61' },
    {
      description: 'two blanks before the name: another cookie',
      input: [['Cookie', 'x=1;  key=a']],
      expected: undefined,
    },
    {
      description: 'A-20 a tab before the name: another cookie',
      input: [['Cookie', 'x=1;\tkey=a']],
      expected: undefined,
    },
    {
      description: 'A-20 a no-break space before the name: another cookie',
      input: [['Cookie', '\u00a0key=a']],
      expected: undefined,
    },
    { description: 'a blank before =: another cookie', input: [['Cookie', 'key =a']], expected: undefined },
    { description: 'a blank after =: another cookie', input: [['Cookie', 'key= a']], expected: undefined },
    { description: 'A-21 sent twice', input: [['Cookie', 'key=a; key=b']], expected: ['a', 'b'] },
    { description: 'A-21 the same value sent twice', input: [['Cookie', 'key=a; key=a']], expected: ['a', 'a'] },
    {
      description: 'A-21 in two lines',
      input: [
        ['Cookie', 'key=a'],
        ['Cookie', 'key=b'],
      ],
      expected: ['a', 'b'],
    },
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

  it.each(['key=\tv', 'key= v'])('a blank after the `=` of a cookie makes it another cookie: %j', (field) => {
    expect(fromCookie('key')(mockRequest({ fields: [['Cookie', field]] }))).toStrictEqual(O.none)
  })
})
