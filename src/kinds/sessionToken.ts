/** Sessions that a token in the field `Authorization` carries: the second way of the session kinds, with `sessions(app, { bearer })`. */
import * as E from 'fp-ts/lib/Either.js'
import type { Context, Request } from '../core/Request.js'
import * as AuthErrors from '../core/AuthError.js'
import { kindOf, type Authenticator } from '../core/Authenticator.js'
import { tokenAfter } from '../core/Credentials.js'
import { documented, type KindOptions } from '../core/Description.js'
import { restsOn } from '../core/Evidence.js'
import { neededBy, type ProofDemand } from '../core/Proof.js'
import { fromAuthorization } from '../core/RequestFields.js'
import { bearerChallenge } from './http.js'
import { sourceOf } from './sessionUser.js'

export interface Carrier {
  readonly scheme: 'Bearer' | 'DPoP'
  readonly parameters: Readonly<Record<string, string>>
  readonly responseFields?: (() => Readonly<Record<string, string>>) | undefined
}

export const tokenScheme = ({ scheme }: Pick<Carrier, 'scheme'>) =>
  ({ type: 'http', scheme: scheme.toLowerCase(), bearerFormat: 'session' }) as const

interface About {
  /** The demand on the caller, in the words of the audit. */
  readonly demands: string | undefined
  readonly by: object | symbol
  readonly checkOwner: (ctx: Context) => void
}

interface TokenKindOptions extends KindOptions {
  readonly proof?: ProofDemand | undefined
}

/** The end of the sign-in that a request came with. */
export const ofSession = restsOn({ endFor: ({ ctx }) => sourceOf(ctx)?.endFor?.() })

/** A token without a session. With a cause: behind `optional`, a wrong token is refused, too. */
export const refusedToken = E.left(AuthErrors.because(AuthErrors.invalid, 'key'))

/** Lets in the user of a session, whom its token names. Whether the user is active and has the rights is decided after it. */
export const sessionTokenKind = (
  { scheme, parameters, responseFields }: Carrier,
  { proof, schemeName, ...options }: TokenKindOptions,
  { demands, by, checkOwner }: About,
): Authenticator<unknown> => {
  const { realm } = options
  // OpenAPI lists each scheme under another name
  const named = schemeName === undefined ? options : { ...options, schemeName: schemeName + scheme }
  return kindOf({
    ...documented(tokenScheme({ scheme }), named),
    demands,
    challenge: bearerChallenge({ ...(realm !== undefined && { realm }), ...parameters }, {}, scheme),
    ambient: false,
    extract: fromAuthorization(scheme),
    credentials: tokenAfter(scheme),
    authenticate: ({ ctx }: Request, token): unknown => {
      checkOwner(ctx)
      return userOfToken(ctx, token)
    },
    leaf: {
      ...(proof !== undefined && { proof: neededBy(proof) }),
      ...(scheme === 'DPoP' && { reads: ['DPoP'] }),
      ...(responseFields !== undefined && { responseFields }),
    },
    notes: { by },
    evidence: ofSession,
  })
}

const userOfToken = (ctx: Context, token: string): unknown => {
  const source = sourceOf(ctx)
  if (source?.isUnavailable() === true) return AuthErrors.unavailable()
  if (source?.refusal !== undefined) return source.refusal
  const session: unknown = source?.token === token ? source.sessionOf(ctx) : undefined
  if (source === undefined || typeof session !== 'object' || session === null) return refusedToken
  return source.isSignedIn(session) ? source.load(session) : refusedToken
}
