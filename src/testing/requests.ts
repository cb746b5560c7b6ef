/**
 * Requests as fast-check arbitraries: safe and unsafe methods, pages here and elsewhere, and fields that must decide nothing.
 *
 * They carry no credential, unless a sketch is joined to them.
 */
import fc, { type Arbitrary } from 'fast-check'
import type { Request } from 'koa'
import { plainRequest } from './plainRequest.js'
import { printed, together, type Line, type Sketch } from './Sketch.js'

/** The host that sketches of `sketches` name. */
export const HOST = 'api.example'

// Who trusts one of these lets everybody in (CVE-2025-29927 and its like)
const decidingNothing: ReadonlyArray<Line> = [
  ['X-User', 'admin'],
  ['X-Forwarded-User', 'admin'],
  ['X-Remote-User', 'admin'],
  ['X-Authenticated', 'true'],
  ['X-Middleware-Subrequest', 'middleware'],
  ['X-Original-URL', '/public'],
  ['X-HTTP-Method-Override', 'OPTIONS'],
  ['X-Forwarded-For', '127.0.0.1'],
  ['__proto__', 'x'],
]

/** Requests that claim to be somebody without any credential. */
export const impostors: ReadonlyArray<Sketch> = [
  ...decidingNothing.map((line): Sketch => ({ fields: [line] })),
  { url: '/?user=admin&userId=1&role=admin&isSuperuser=true' },
  { url: '/?__proto__=x&constructor=x' },
  { method: 'OPTIONS' },
  { method: 'HEAD' },
]

/** A write that a page elsewhere makes a browser send. */
export const crossSite: Sketch = {
  method: 'POST',
  fields: [
    ['Host', HOST],
    ['Sec-Fetch-Site', 'cross-site'],
    ['Origin', 'https://other.example'],
  ],
}

/**
 * Sketches of requests without a credential: join one with `together`.
 *
 * @example
 * import fc from 'fast-check'
 * import { sendBearer, sketches, together } from 'koa-with-auth/testing'
 *
 * const signedIn = sketches().map((sketch) => together(sketch, sendBearer('supersecret')))
 * fc.assert(fc.property(signedIn, ({ fields = [] }) => fields.some(([name]) => name === 'Authorization')))
 */
export const sketches = (): Arbitrary<Sketch> =>
  fc
    .record({
      method: fc.constantFrom('GET', 'HEAD', 'POST', 'DELETE'),
      site: fc.constantFrom(undefined, 'same-origin', 'same-site', 'cross-site', 'none'),
      origin: fc.constantFrom(undefined, `https://${HOST}`, 'https://other.example', 'null'),
      beside: fc.option(fc.constantFrom(...decidingNothing), { nil: undefined, freq: 3 }),
    })
    .map(({ method, site, origin, beside }) => ({
      method,
      fields: [
        ['Host', HOST],
        ...(site === undefined ? [] : [['Sec-Fetch-Site', site] as const]),
        ...(origin === undefined ? [] : [['Origin', origin] as const]),
        ...(beside === undefined ? [] : [beside]),
      ],
    }))

/**
 * Koa requests: each carries one of these credentials, or none where none are given. A counterexample shows what was
 * sent.
 *
 * @example
 * import fc from 'fast-check'
 * import { httpBearer } from 'koa-with-auth'
 * import { bearerTokens, requests, sendBearer } from 'koa-with-auth/testing'
 *
 * const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 * await fc.assert(
 *   fc.asyncProperty(requests(bearerTokens().map(sendBearer)), async (request) => {
 *     assert.strictEqual((await bearer.evaluate(request))._tag, 'Left')
 *   }),
 * )
 */
export const requests = (credentials: Arbitrary<Sketch> = fc.constant({})): Arbitrary<Request> =>
  fc.tuple(sketches(), credentials).map(([about, sent]) => {
    const sketch = together(about, sent)
    return Object.assign(plainRequest(sketch), { [fc.toStringMethod]: () => printed(sketch) })
  })
