/** What specs use of runner.mjs, which is plain JavaScript so that this folder can be copied. */
import type { CorpusRequest, Macros } from '../support/models/corpus.js'

export declare const corpus: unknown
export declare const bytesOf: (request: CorpusRequest, macros: Macros) => string
export declare const sendRaw: (port: number, bytes: string, timeout?: number, host?: string) => Promise<RawAnswer>
export declare const secretsOf: (request: CorpusRequest, macros: Macros) => ReadonlyArray<string>
export declare const runContract: (
  url: string,
  report?: (result: ContractResult) => void,
) => Promise<{ readonly offered: ReadonlyArray<string>; readonly results: ReadonlyArray<ContractResult> }>

/** A response, as it was sent. */
export interface RawAnswer {
  /** The status, or what happened instead. */
  readonly status: number | 'closed' | 'hang'
  /** Header lines as they were sent, with names in lower case. */
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>
  readonly body: string
}

/** What happened to a case of the contract. */
export interface ContractResult {
  readonly id: string
  readonly route: string
  readonly must: 'accept' | 'refuse' | 'either'
  readonly status: RawAnswer['status']
  readonly faults: ReadonlyArray<string>
}
