/** Evaluating never throws or rejects. That it agrees with the call: calling.law; when it is sync: truthTable.law. */
import { either as E, option as O } from 'fp-ts'
import fc from 'fast-check'
import { apiKeyHeader, AuthError, authenticator, Challenge } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { mockRequest } from 'koa-with-auth/testing'

const isEither = (u: unknown): boolean =>
  typeof u === 'object' && u !== null && '_tag' in u && (u._tag === 'Left' || u._tag === 'Right')

describe('an authenticator never throws and never rejects its promise (A-30, A-31)', () => {
  it('whatever the parts of your own kind throw: extract, codec, challenge', async () => {
    const sent = { challenge: Challenge.make('Test'), ambient: false, extract: () => O.some('sent') }
    const raise = (): never => {
      throw new Error('part')
    }
    const parts = [
      authenticator({ ...sent, extract: raise, authenticate: () => 'anna' }),
      authenticator({ ...sent, extract: () => null as never, authenticate: () => 'anna' }),
      authenticator({ ...sent, extract: () => Promise.resolve(O.some('sent')) as never, authenticate: () => 'anna' }),
      authenticator({
        ...sent,
        challenge: onlyForAbsent,
        authenticate: () => Promise.resolve(E.left(AuthError.expired)),
      }),
      authenticator({ ...sent, challenge: onlyForAbsent, authenticate: () => Promise.reject(new Error('late')) }),
      authenticator({ ...sent, challenge: onlyForAbsent, authenticate: raise }),
    ]
    for (const part of parts) {
      const result = await part.evaluate(mockRequest())
      expect(isEither(result) && E.isLeft(result)).toBe(true)
    }
  })
})

// Fails what is only known when a request comes
const onlyForAbsent = ({ _tag }: AuthError): Challenge => {
  if (_tag === 'raised' || _tag === 'expired') throw new Error('challenge')
  return Challenge.make('Test')
}

describe('calls of the hook', () => {
  it('5.1.4 the hook is called once for each credential that is sent, well-formed and not too long, and never otherwise', async () => {
    const length = fc.integer({ min: 0, max: 40 })
    await fc.assert(
      fc.asyncProperty(fc.array(length, { maxLength: 3 }), fc.integer({ min: 1, max: 40 }), async (sent, maxLength) => {
        let calls = 0
        const key = apiKeyHeader({ maxLength, authenticate: () => ++calls })
        const result = await key.evaluate(mockRequest({ fields: sent.map((of) => ['key', 'k'.repeat(of)] as const) }))
        const [only = 0] = sent
        const wellFormed = sent.length === 1 && only > 0 && only <= maxLength
        expect(calls).toBe(wellFormed ? 1 : 0)
        if (wellFormed) expect(result).toStrictEqual(E.right(1))
        else expect(result).toMatchObject(E.left({ _tag: sent.length === 0 ? 'absent' : 'malformed' }))
      }),
    )
  })
})
