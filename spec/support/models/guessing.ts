/** Guesses at passwords behind `throttled`, and what becomes of them. */
import { either as E } from 'fp-ts'
import { httpBasicAuth, throttled, type Authenticator, type ThrottledOptions } from 'koa-with-auth'
import { BasicCredentials } from 'koa-with-auth/fp'
import { mockRequest, type RequestSpec } from 'koa-with-auth/testing'
import { RateLimiterMemory } from 'rate-limiter-flexible'

type Field = readonly [name: string, value: string]

export const memory = (points: number, duration = 60) => new RateLimiterMemory({ points, duration })

export const basicOf = (username: string, password: string): Field => [
  'Authorization',
  BasicCredentials.encode({ username, password }),
]

/** A request of this address; `undefined`: its socket has none. */
export const from = (remoteAddress: string | undefined, fields: ReadonlyArray<Field> = [], more: RequestSpec = {}) =>
  mockRequest({ ...more, remoteAddress, fields: [['Host', 'api.example'], ...fields] })

export const guess = (user: string, password = 'wrong', address = '192.0.2.1') =>
  from(address, [basicOf(user, password)])

/** The tags of the failures of these requests, one after the other; `passed` for each that passes. */
export const tagsOf = async (a: Authenticator<unknown>, ...requests: ReadonlyArray<ReturnType<typeof from>>) => {
  const tags: string[] = []
  for (const request of requests) {
    const result = await a.evaluate(request)
    tags.push(E.isLeft(result) ? result.left._tag : 'passed')
  }
  return tags.join(' ')
}

/** Basic with this hook, and the users and passwords for which the hook was called. By default only `good` passes. */
export const basicWith = (answer: (password: string, username: string) => unknown = isGood) => {
  const calls: string[] = []
  const basic = httpBasicAuth({
    authenticate: (_request, username, password) => {
      calls.push(`${username} ${password}`)
      return answer(password, username)
    },
  })
  return { basic, calls }
}
const isGood = (password: string, username: string) => password === 'good' && { username }

type Guessing = Partial<ThrottledOptions<BasicCredentials>> & { readonly answer?: Parameters<typeof basicWith>[0] }

/** The same behind `throttled`, with a limiter, or with a limit of so many guesses in a minute. */
export const guessing = (limit: number | ThrottledOptions<unknown>['limiter'], { answer, ...more }: Guessing = {}) => {
  const { basic, calls } = basicWith(answer)
  const limiter = typeof limit === 'number' ? memory(limit) : limit
  const a = throttled<BasicCredentials>({ limiter, ...more })(basic)
  return { a, calls, tags: (...requests: ReadonlyArray<ReturnType<typeof from>>) => tagsOf(a, ...requests) }
}

export const times = <A>(count: number, of: (at: number) => A): A[] => Array.from({ length: count }, (_, at) => of(at))
