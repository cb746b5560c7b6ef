/** Where an application sends the tokens that providers gave for its users: `upstream` notes the addresses, and the audit reports them. */

/** One resource server that an application calls as its users. */
export interface AuditedUpstream {
  /** The URL of the resource server. */
  readonly resource: string
  /** The issuer, or the name of the provider, whose tokens are sent. */
  readonly provider: string
  /** The scopes that calls need. */
  readonly scope: ReadonlyArray<string>
  /** Whether a grant belongs to the session or to the user. */
  readonly per: 'session' | 'user'
}

export interface Upstreams {
  readonly upstreams: AuditedUpstream[]
}

const providers: unique symbol = Symbol.for('koa-with-auth/grants')

/** The keepers of an application's grants, by provider; both copies of the package in a process see the same. */
export const providersOf = (app: { [providers]?: Map<object, Upstreams> }): Map<object, Upstreams> => {
  const made = app[providers] ?? new Map<object, Upstreams>()
  // not enumerable, because applications are printed
  Object.defineProperty(app, providers, { value: made })
  return made
}

export const upstreamsOf = (app: object): ReadonlyArray<AuditedUpstream> =>
  [...providersOf(app).values()].flatMap(({ upstreams }) => upstreams)
