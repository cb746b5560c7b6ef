// The library has no types; these are the parts that specs and the shop use
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'
  export interface Context {
    readonly req: IncomingMessage
    readonly res: ServerResponse
    readonly path: string
    readonly method: string
    readonly get: (field: string) => string
    readonly set: (field: string, value: string) => void
    status: number
    body: unknown
    respond: boolean
  }
  interface Token {
    readonly accountId: string
    readonly scopes: ReadonlySet<string>
    /** In seconds since 1970. */
    readonly iat: number
    readonly exp: number
  }
  interface Tokens {
    readonly find: (value: string) => Promise<Token | undefined>
    readonly revokeByGrantId: (id: string) => Promise<void>
  }
  export class Provider {
    constructor(issuer: string, configuration: object)
    readonly AccessToken: Tokens
    readonly RefreshToken: Tokens
    readonly Grant: { readonly find: (id: string) => Promise<{ readonly destroy: () => Promise<void> } | undefined> }
    readonly Session: {
      readonly get: (ctx: Context) => Promise<{ readonly grantIdFor: (client: string) => string | undefined }>
    }
    callback(): (req: IncomingMessage, res: ServerResponse) => void
    on(event: string, listener: (...args: unknown[]) => void): this
    use(middleware: (ctx: Context, next: () => Promise<void>) => Promise<void>): this
    interactionFinished(req: IncomingMessage, res: ServerResponse, result: object, options: object): Promise<void>
  }
}
