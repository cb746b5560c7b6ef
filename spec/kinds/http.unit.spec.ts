/** `httpBasicAuth` and `httpBearer`. */
import { either as E } from 'fp-ts'
import { Challenge, httpBasicAuth, AuthError, httpBearer } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { mockRequest } from 'koa-with-auth/testing'
import { leaves } from '../../src/core/Description.js'
import { bearerChallenge } from '../../src/kinds/http.js'
import { row } from '../support/models/row.js'

const sending = (...lines: string[]) => mockRequest({ fields: lines.map((line) => ['Authorization', line] as const) })

// Basic (spec 5.3.2, RFC 7617): the hook is called with the user name and the password as they were sent, or is not called.
describe('httpBasicAuth', () => {
  const basicOf = (pair: string) => `Basic ${Buffer.from(pair).toString('base64')}`

  const evaluate = (request: ReturnType<typeof sending>, maxLength = 8192) => {
    const asked: Array<readonly [string, string]> = []
    const basic = httpBasicAuth({ maxLength, authenticate: (_request, ...pair) => asked.push(pair) })
    return { asked, result: basic.evaluate(request) }
  }

  describe('what reaches the hook of httpBasicAuth', () => {
    it.each([
      row('5.3.2 user name and password', basicOf('anna:secret'), ['anna', 'secret']),
      row('decision "Basic" empty parts reach it', basicOf(':'), ['', '']),
    ])('$description', ({ input, expected }) => {
      expect(evaluate(sending(input))).toStrictEqual({ asked: [expected], result: E.right(1) })
    })

    it('decision "length of a credential": the scheme counts', () => {
      const field = basicOf('a:b')
      expect(evaluate(sending(field), field.length).result).toStrictEqual(E.right(1))
      expect(evaluate(sending(field), field.length - 1).result).toMatchObject(E.left({ _tag: 'malformed' }))
    })
  })

  describe('description of httpBasicAuth', () => {
    it('B-21 has a challenge that asks for UTF-8, with the realm first, and is ambient', () => {
      expect(httpBasicAuth({ realm: 'office', authenticate: () => 1 }).description).toStrictEqual({
        _tag: 'Leaf',
        scheme: { type: 'http', scheme: 'basic' },
        challenge: Challenge.make('Basic', { realm: 'office', charset: 'UTF-8' }),
        ambient: true,
        isSent: expect.any(Function),
      })
    })
  })
})

// Bearer tokens (spec 5.3.1, RFC 6750): what reaches the hook, and the challenge of each failure.
describe('httpBearer', () => {
  const evaluate = (request: ReturnType<typeof sending>, answer: unknown = 'anna') => {
    const asked: string[] = []
    const bearer = httpBearer({
      authenticate: (_request, token): unknown => {
        asked.push(token)
        return answer
      },
    })
    return { asked, result: bearer.evaluate(request) }
  }

  describe('what reaches the hook of httpBearer', () => {
    it.each([
      row('5.3.1 a token', ['Bearer abc'], 'abc'),
      row('B-02 a scheme in lower case', ['bearer abc'], 'abc'),
      row('decision "Bearer" surrounding spaces are not a part of it', ['Bearer   abc \t'], 'abc'),
      row('a token of 8 KB with its scheme', [`Bearer ${'t'.repeat(8185)}`], 't'.repeat(8185)),
    ])('$description', ({ input, expected }) => {
      expect(evaluate(sending(...input))).toStrictEqual({ asked: [expected], result: E.right('anna') })
    })
  })

  describe('RFC 6750 §3 the challenge of httpBearer', () => {
    it.each<[description: string, request: ReturnType<typeof sending>, answer: unknown, expected: object]>([
      ['B-15 absent: no error', sending(), 1, {}],
      ['B-16 malformed', sending('Bearer ,'), 1, { error: 'invalid_token' }],
      ['B-03 a tab after the scheme', sending('Bearer\ta'), 1, { error: 'invalid_token' }],
      ['B-16 refused', sending('Bearer a'), false, { error: 'invalid_token' }],
      ['expired', sending('Bearer a'), E.left(AuthError.expired), { error: 'invalid_token' }],
      [
        'B-16 insufficient',
        sending('Bearer a'),
        E.left(AuthError.insufficient(['read', 'write'])),
        { error: 'insufficient_scope', scope: 'read write' },
      ],
      ['without a scope', sending('Bearer a'), E.left(AuthError.insufficient()), { error: 'insufficient_scope' }],
      ['unavailable: no error', sending('Bearer a'), E.left(AuthError.unavailable()), {}],
    ])('%s', (_description, request, answer, expected) => {
      const { result } = evaluate(request, answer)
      expect(result).toMatchObject(E.left({ challenge: { scheme: 'Bearer' } }))
      expect(E.isLeft(result as E.Either<AuthError, unknown>) && result).toHaveProperty(
        'left.challenge.parameters',
        expected,
      )
    })

    it('has more for an expired token, and for no other', () => {
      const of = bearerChallenge({ own: 'x' }, { error_description: 'expired' })
      const invalid = { own: 'x', error: 'invalid_token' }
      expect(of(AuthError.expired).parameters).toEqual({ ...invalid, error_description: 'expired' })
      expect(of(AuthError.invalid).parameters).toEqual(invalid)
    })

    it('RFC 9728 §5.1 has its realm and additional parameters for every failure', () => {
      const parameters = { resource_metadata: 'https://api.example/.well-known/oauth-protected-resource' }
      for (const answer of [false, E.left(AuthError.expired), E.left(AuthError.insufficient(['read']))]) {
        const bearer = httpBearer({ realm: 'pets', challenge: parameters, authenticate: () => answer })
        for (const request of [sending(), sending('Bearer a')]) {
          const challenge = { parameters: { realm: 'pets', ...parameters } }
          expect(bearer.evaluate(request)).toMatchObject(E.left({ challenge }))
        }
      }
    })

    it.each([
      ...['Scope', 'realm', 'error', 'Error_Description', 'error_uri'].map((name) => ({
        description: `${name}, which the library writes`,
        challenge: { [name]: 'x' },
        expected: new RegExp(`"${name}" is written by the library`),
      })),
      { description: 'a line break', challenge: { resource_metadata: 'a\r\nb' }, expected: /printable ASCII/ },
      { description: 'an invalid name', challenge: { 'a b': 'c' }, expected: /not a token/ },
      { description: 'a string', challenge: 'https://api.example', expected: /must be an object of strings/ },
      { description: 'null', challenge: null, expected: /must be an object of strings/ },
    ])('with wrong additional parameters is a TypeError: $description', ({ challenge, expected }) => {
      // Safe: a caller without types could write this
      const options = { challenge: challenge as never, authenticate: () => true }
      expect(() => httpBearer(options)).toThrow(TypeError)
      expect(() => httpBearer(options)).toThrow(expected)
    })

    it.each(['a"b', 'a\r\nb', 'é'])('B-17 a scope of the hook that is not valid in it is raised: %j', async (scope) => {
      const answer = E.left(AuthError.insufficient([scope]))
      for (const given of [answer, Promise.resolve(answer)]) {
        const result = await evaluate(sending('Bearer a'), given).result
        const reported = E.isLeft(result) ? result.left : undefined
        if (reported?._tag === 'raised') continue
        expect(reported?._tag).toBe('insufficient')
        expect(Challenge.render('api')(reported!.challenge!)).toMatch(/^[\x20-\x7e]*$/)
      }
    })
  })

  describe('httpBearer({ schemes })', () => {
    const asked: string[] = []
    const either = httpBearer({
      schemes: ['Bearer', 'Token'],
      authenticate: (_request, token) => {
        asked.push(token)
        return token === 'good' && { token }
      },
    })
    const decide = async (authorization: string | undefined) => {
      asked.length = 0
      const request = authorization === undefined ? sending() : sending(authorization)
      return either(request)()
    }

    it.each(['Bearer good', 'Token good', 'token  good', 'BEARER good'])('accepts %s', async (authorization) => {
      expect(await decide(authorization)).toMatchObject({ _tag: 'Right', right: { token: 'good' } })
      expect(asked).toStrictEqual(['good'])
    })

    it.each([undefined, 'Token', 'Token bad', 'Bearer bad', 'Tokens good', 'Basic good', 'Token good good'])(
      'refuses %s, with a challenge for each scheme',
      async (authorization) => {
        const result = await decide(authorization)
        expect(result._tag).toBe('Left')
        if (result._tag !== 'Left') return
        expect((result.left.branches ?? []).map(({ challenge }) => challenge?.scheme)).toStrictEqual([
          'Bearer',
          'Token',
        ])
      },
    )

    it('OpenAPI lists each scheme', () => {
      expect(leaves(either.description).map(({ scheme }) => scheme)).toStrictEqual([
        { type: 'http', scheme: 'bearer' },
        { type: 'http', scheme: 'token' },
      ])
      expect(leaves(either.description).map(({ schemeName }) => schemeName)).toStrictEqual([undefined, undefined])
    })

    it('the first scheme has the schemeName, and the others have derived names; only Bearer has a format', () => {
      const named = httpBearer({
        schemes: ['Token', 'Bearer'],
        schemeName: 'login',
        bearerFormat: 'JWT',
        authenticate: () => false,
      })
      expect(leaves(named.description)).toMatchObject([
        { schemeName: 'login', scheme: { type: 'http', scheme: 'token' } },
        { schemeName: 'loginBearer', scheme: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } },
      ])
      expect(leaves(named.description)[0]?.scheme).not.toHaveProperty('bearerFormat')
    })

    it.each([
      { schemes: [], says: 'must be an array of scheme names' },
      { schemes: 'Token', says: 'must be an array of scheme names' },
      { schemes: ['To ken'], says: 'a scheme is a name such as "Token"' },
      { schemes: [1], says: 'a scheme is a name such as "Token"' },
      { schemes: ['Token', 'token'], says: 'names a scheme twice' },
      { schemes: ['basic'], says: 'use httpBasicAuth' },
    ])('$schemes is a TypeError', ({ schemes, says }) => {
      // Safe: a caller without types could pass this
      const options = { schemes: schemes as unknown as [string], authenticate: () => false }
      expect(() => httpBearer(options)).toThrow(says)
      expect(() => httpBearer(options)).toThrow(TypeError)
    })
  })
})

describe('httpBearer({ syntax })', () => {
  const sanctum = httpBearer({ syntax: /\d+\|[A-Za-z0-9]+/g, authenticate: (_request, token) => ({ token }) })
  const result = async (field: string) => sanctum(sending(field))()

  it.each(['Bearer 12|abc', 'bearer 12|abc', 'Bearer   12|abc'])('takes %j, again and again', async (field) => {
    for (let n = 0; n < 3; n++) expect(await result(field)).toEqual(E.right({ token: '12|abc' }))
  })

  it.each([
    'Bearer',
    'Bearer ',
    'Bearer 12|',
    'Bearer 12|abc x',
    'Bearer x12|abc',
    'Bearer 12|abc|',
    'Bearer 12|ab\u00e9',
  ])('refuses %j: the whole token must match', async (field) => {
    expect(await result(field)).toMatchObject({ left: { _tag: 'malformed', why: 'syntax' } })
  })

  it('is for its scheme only', async () => {
    expect(await result('Bearer12|abc')).toMatchObject({ left: { _tag: 'absent' } })
    expect(await result('Token 12|abc')).toMatchObject({ left: { _tag: 'absent' } })
  })

  it.each(['x', {}, 1, () => true])('is a TypeError if it is %o', (syntax) => {
    expect(() => httpBearer({ syntax: syntax as never, authenticate: () => 1 })).toThrow(/syntax \}\) must be a RegExp/)
  })
})

describe('a token of httpBearer', () => {
  it('is visible ASCII, whatever its own syntax allows', () => {
    const any = httpBearer({ syntax: /.+/, authenticate: (_request, token) => ({ token }) })
    expect(any.evaluate(sending('Bearer 1|x'))).toStrictEqual(E.right({ token: '1|x' }))
    for (const token of ['a b', 'é', 'a\tb']) {
      expect(any.evaluate(sending(`Bearer ${token}`))).toMatchObject(E.left({ _tag: 'malformed' }))
    }
  })

  it('B-31 is sent by no browser, so other sites may write with it', () => {
    const fields = [['Authorization', 'Bearer t'], ['Sec-Fetch-Site', 'cross-site']] as const // prettier-ignore
    const bearer = httpBearer({ authenticate: () => 'anna' })
    expect(bearer.evaluate(mockRequest({ method: 'POST', fields }))).toStrictEqual(E.right('anna'))
  })
})
