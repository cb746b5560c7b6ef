/**
 * Basic (spec 5.3.2, RFC 7617): the hook is called with the user name and the password as they were sent, or is not
 * called.
 */
import { either as E } from 'fp-ts'
import { Challenge, httpBasicAuth } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { mockRequest } from 'koa-with-auth/testing'

const sending = (...lines: string[]) => mockRequest({ fields: lines.map((line) => ['Authorization', line] as const) })
const basicOf = (pair: string) => `Basic ${Buffer.from(pair).toString('base64')}`

const evaluate = (request: ReturnType<typeof sending>, maxLength = 8192) => {
  const asked: Array<readonly [string, string]> = []
  const basic = httpBasicAuth({ maxLength, authenticate: (_request, ...pair) => asked.push(pair) })
  return { asked, result: basic.evaluate(request) }
}

describe('what reaches the hook of httpBasicAuth', () => {
  it.each([
    { description: '5.3.2 user name and password', input: basicOf('anna:secret'), expected: ['anna', 'secret'] },
    { description: 'B-20 the first colon separates', input: basicOf('anna:a:b'), expected: ['anna', 'a:b'] },
    { description: 'decision "Basic" empty parts reach it', input: basicOf(':'), expected: ['', ''] },
    { description: 'B-21 UTF-8', input: basicOf('änna:пароль'), expected: ['änna', 'пароль'] },
    {
      description: 'A-16 a long password, whole',
      input: basicOf(`a:${'p'.repeat(1000)}`),
      expected: ['a', 'p'.repeat(1000)],
    },
    { description: 'A-29 __proto__', input: basicOf('__proto__:x'), expected: ['__proto__', 'x'] },
  ])('$description', ({ input, expected }) => {
    expect(evaluate(sending(input))).toStrictEqual({ asked: [expected], result: E.right(1) })
  })

  it.each([
    { description: '5.1.4 no credential', input: [], expected: 'absent' },
    { description: 'the credential of another scheme', input: ['Bearer abc'], expected: 'absent' },
    { description: 'B-23 no scheme', input: [basicOf('a:b').slice(6)], expected: 'absent' },
    { description: 'a bare scheme', input: ['Basic'], expected: 'malformed' },
    { description: 'no colon', input: [basicOf('ab')], expected: 'malformed' },
    { description: 'B-22 invalid base64', input: ['Basic YTpi*'], expected: 'malformed' },
    { description: 'A-22 two lines', input: [basicOf('a:b'), basicOf('a:b')], expected: 'malformed' },
    { description: 'A-22 two lines of two schemes', input: [basicOf('a:b'), 'Bearer abc'], expected: 'malformed' },
    { description: 'B-20 a control character', input: [basicOf('a:b\u0000')], expected: 'malformed' },
  ])('the hook is not called: $description: $expected', ({ input, expected }) => {
    const { asked, result } = evaluate(sending(...input))
    expect(asked).toStrictEqual([])
    expect(result).toMatchObject(E.left({ _tag: expected }))
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

  it('A-36 a wrong user and a wrong password fail in the same way', () => {
    const basic = httpBasicAuth({
      authenticate: (_request, user, password) => user === 'anna' && password === 'x' && { user },
    })
    expect(basic.evaluate(sending(basicOf('anna:y')))).toStrictEqual(basic.evaluate(sending(basicOf('bert:x'))))
  })
})
