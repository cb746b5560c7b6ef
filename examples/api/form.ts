// Reads `application/x-www-form-urlencoded` bodies, and nothing else, into an object that an io-ts codec has checked.
import coBody from 'co-body'
import * as E from 'fp-ts/lib/Either.js'
import * as t from 'io-ts'
import type { Context } from 'koa'

/** A body that cannot be accepted, and the reason. */
export class BadForm extends Error {
  readonly status: 400 | 413 | 415 | 422
  readonly fields: ReadonlyArray<string>

  constructor(status: BadForm['status'], message: string, fields: ReadonlyArray<string> = []) {
    super(message)
    this.status = status
    this.fields = fields
  }
}

const nonEmpty = t.refinement(t.string, (text) => text !== '', 'non-empty string')

/** User name and password. */
export const SignInForm = t.type({ username: nonEmpty, password: nonEmpty })

/** Reads the form of a request. Throws BadForm with the status of the mistake. */
export const readForm = async <A>(ctx: Context, codec: t.Decoder<unknown, A>): Promise<A> => {
  // The media type is read once, and decides whether the body is read at all
  const mediaType = /^application\/x-www-form-urlencoded(?:;\s*charset=utf-8)?$/i
  if (!mediaType.test(ctx.get('Content-Type'))) throw new BadForm(415, 'send application/x-www-form-urlencoded')
  const text: unknown = await coBody.text(ctx, { limit: '10kb' }).catch((error: unknown) => {
    const tooLarge = typeof error === 'object' && error !== null && 'status' in error && error.status === 413
    throw new BadForm(tooLarge ? 413 : 400, tooLarge ? 'the body is too large' : 'the body cannot be read')
  })
  // a field that is sent twice counts as missing: it is not known which value is meant
  const sent = new URLSearchParams(String(text))
  const form = Object.fromEntries(
    [...sent.keys()].map((name) => [name, sent.getAll(name).length === 1 && sent.get(name)]),
  )
  const decoded = codec.decode(form)
  if (E.isRight(decoded)) return decoded.right
  const fields = decoded.left.map(({ context }) =>
    context
      .map(({ key }) => key)
      .join('')
      .trim(),
  )
  throw new BadForm(422, 'a field is missing', [...new Set(fields)])
}
