// The library has no types; these are the parts that specs use
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http'
  export class Provider {
    constructor(issuer: string, configuration: object)
    callback(): (req: IncomingMessage, res: ServerResponse) => void
    on(event: string, listener: (...args: unknown[]) => void): this
  }
}
