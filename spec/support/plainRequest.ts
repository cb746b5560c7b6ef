/** A Koa request that came over no socket: for what reads a request and writes no response. */
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import Koa, { type Request } from 'koa'

/** What a client would send. */
export interface Sketch {
  readonly method?: string
  readonly url?: string
  /** Header lines in order, repetitions included. */
  readonly fields?: ReadonlyArray<readonly [name: string, value: string]>
}

const app = new Koa()

// What Node's parser calls; it keeps the raw lines and derives `headers` from them
const receive = (req: IncomingMessage, lines: string[]): void => {
  Reflect.apply(Reflect.get(req, '_addHeaderLines') as Function, req, [lines, lines.length])
}

/** Makes the request. */
export const plainRequest = ({ method = 'GET', url = '/', fields = [] }: Sketch = {}): Request => {
  const req = new IncomingMessage(new Socket())
  req.method = method
  req.url = url
  receive(req, fields.flat())
  return app.createContext(req, new ServerResponse(req)).request
}

// Without this, what reads `headers` would find nothing, and tests of absence would pass for ever
if (plainRequest({ fields: [['Probe', 'a']] }).headers['probe'] !== 'a') throw new Error('Node fills requests anew')
