// The library has no types; these are the parts that specs use
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'
  interface Context {
    readonly req: IncomingMessage
    readonly res: ServerResponse
    readonly path: string
    respond: boolean
  }
  export class Provider {
    constructor(issuer: string, configuration: object)
    callback(): (req: IncomingMessage, res: ServerResponse) => void
    on(event: string, listener: (...args: unknown[]) => void): this
    use(middleware: (ctx: Context, next: () => Promise<void>) => Promise<void>): this
    interactionFinished(req: IncomingMessage, res: ServerResponse, result: object, options: object): Promise<void>
  }
}
