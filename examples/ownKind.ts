/**
 * A kind of your own: requests signed with a shared key, `X-Signature: <until>.<HMAC of "until METHOD url">`.
 *
 * `authenticator` makes the built-in kinds, too: it extracts the credential, decodes it with an io-ts codec, calls the
 * hook, and describes itself. This kind signs the method and the URL, and the same request can be repeated until `until`.
 * For bodies that are signed, see the guides "Webhooks" and "Agents and signed requests".
 */
import { createHmac } from 'node:crypto'
import Router from '@koa/router'
import * as E from 'fp-ts/lib/Either.js'
import * as t from 'io-ts'
import { AuthError, authenticator, Challenge, constantTimeEqual, fromHeader, withAuth } from 'koa-with-auth'

// Replace this with your own keys, kept outside the code.
const senders = new Map([['shop', 'a shared key of thirty-two bytes']])

interface Signature {
  readonly until: number
  readonly mac: string
}

// A credential that the codec refuses is malformed: the hook is not called
const Signature = new t.Type<Signature, string, unknown>(
  'Signature',
  (u): u is Signature => typeof u === 'object' && u !== null && 'until' in u && 'mac' in u,
  (u, context) => {
    const [, until, mac] = /^(\d{1,12})\.([0-9a-f]{64})$/.exec(String(u)) ?? []
    return until === undefined || mac === undefined ? t.failure(undefined, context) : t.success({ until: +until, mac })
  },
  ({ until, mac }) => `${until}.${mac}`,
)

/** The value of `X-Signature`. */
export const sign = (key: string, until: number, method: string, url: string): Signature => ({
  until,
  mac: createHmac('sha256', key).update(`${until} ${method} ${url}`).digest('hex'),
})

const signed = authenticator({
  scheme: { type: 'apiKey', in: 'header', name: 'X-Signature', description: '<until>.<HMAC-SHA256>' },
  challenge: Challenge.make('Signature', { name: 'X-Signature', algorithm: 'hmac-sha256' }),
  ambient: false,
  extract: fromHeader('X-Signature'),
  credentials: Signature,
  authenticate: (request, { until, mac }) => {
    const sender = [...senders].find(([, key]) =>
      constantTimeEqual(mac, sign(key, until, request.method, request.originalUrl).mac),
    )?.[0]
    return sender !== undefined && until * 1000 < Date.now() ? E.left(AuthError.expired) : E.right(sender)
  },
})

export const router = new Router()

router.get('/signed', withAuth(signed), (ctx) => {
  ctx.body = `Signed by ${ctx.request.auth}`
})
