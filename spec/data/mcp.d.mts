/** What specs use of mcp.mjs, which is plain JavaScript so that this file can be copied. */
import type { KeyObject } from 'node:crypto'

interface Issuer {
  readonly issuer: string
  readonly signed: (claims?: object, options?: { readonly header?: object; readonly by?: KeyObject }) => string
  readonly foreignKey: KeyObject
  readonly stop: () => void
}

interface McpResult {
  readonly id: string
  readonly rule: string
  readonly source: string
  /** `undefined` if it was not asked. */
  readonly ok: boolean | undefined
  readonly what: string
}

export declare const rules: ReadonlyArray<{ readonly id: string; readonly needs?: 'issuer' | 'modern' | 'tool' }>
export declare const startIssuer: (port?: number) => Promise<Issuer>
export declare const runMcpRules: (
  server: {
    readonly url: string
    readonly issuer?: Issuer
    readonly scopes?: string
    readonly tool?: string
    readonly needs?: string
  },
  report?: (result: McpResult) => void,
) => Promise<ReadonlyArray<McpResult>>
