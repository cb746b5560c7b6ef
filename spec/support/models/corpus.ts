/**
 * The requests of `spec/data/bad-inputs.json`: their bytes, the answers that they must get, and what must hold for
 * each.
 */
import * as runner from '../../data/runner.mjs'
import { sendRaw, valuesOf, type RawAnswer } from '../servers/rawSocket.js'

type Text =
  string | { readonly prefix: string; readonly repeat: string; readonly times: number; readonly suffix: string }

export interface CorpusRequest {
  readonly method: string
  readonly path: Text
  /** If the value is null, the line has no colon. */
  readonly rawHeaders: ReadonlyArray<readonly [name: string, value: Text | null]>
  readonly body?: Text
  readonly httpVersion?: string
  readonly omitHost?: boolean
  readonly repeatHeader?: {
    readonly name: string
    readonly value: string
    readonly times: number
    readonly at: 'start' | 'end'
  }
}

export interface CorpusCase {
  readonly id: string
  readonly target: string
  readonly request: CorpusRequest
  /** The route of the contract, if a server with five routes can be asked. */
  readonly route?: string
  /** What any server must do. */
  readonly must: 'accept' | 'refuse' | 'either'
  readonly expect: string
  readonly why: string
  /** Where it is written. */
  readonly rule: string
  readonly tags?: ReadonlyArray<string>
  /** How much of the processor it may take, in milliseconds. */
  readonly maxMs?: number
  readonly assert?: {
    readonly bodyNotContains?: ReadonlyArray<string>
    readonly headNotContains?: ReadonlyArray<string>
  }
}

interface Corpus {
  readonly app: {
    readonly basicUsers: Readonly<Record<string, string>>
    readonly extraUsers: Readonly<Record<string, string>>
    readonly session: { readonly keys: ReadonlyArray<string> }
    readonly jwt: { readonly issuer: string; readonly audience: string; readonly publicKey: string }
  }
  readonly cases: ReadonlyArray<CorpusCase>
}

// Safe: the file belongs to this repository, and a test compares it with its schema
export const corpus = runner.corpus as Corpus

/** The values of `{{...}}`. */
export type Macros = Readonly<Record<string, string>>

/** A server on which cases run, its macros, and how often its operations have run. */
export interface Ground {
  readonly port: number
  readonly macros: Macros
  readonly calls: () => number
}

// --- bytes

/** A request as it is sent over the socket, one character for each byte. */
export const bytesOf: (request: CorpusRequest, macros: Macros) => string = runner.bytesOf

/** Sends a request of the corpus. */
export const send = ({ port, macros }: Ground, request: CorpusRequest): Promise<RawAnswer> =>
  sendRaw(port, bytesOf(request, macros))

// --- expectations

/** Whether a status, or what happened instead, is the expected one. */
export const isExpected = (expect: string, status: RawAnswer['status']): boolean => {
  if (expect === 'never-2xx') return typeof status === 'number' && ((status >= 300 && status < 500) || status === 501)
  if (expect === 'either') return typeof status === 'number' && status < 500
  return expect.split('|').includes(String(status))
}

const isAccepted = ({ status }: RawAnswer): boolean => typeof status === 'number' && status >= 200 && status < 300

const isClientError = ({ status }: RawAnswer): boolean => typeof status === 'number' && status >= 400 && status < 500

/** What a client sent in confidence: credentials, keys, cookies, query values, as sent and decoded. */
const secretsOf: (request: CorpusRequest, macros: Macros) => ReadonlyArray<string> = runner.secretsOf

const everything = ({ headers, body }: RawAnswer): string =>
  [...headers.map(([name, value]) => `${name}: ${value}`), body].join('\n')

/** What a response says about authentication. */
export const authHeaders = (answer: RawAnswer) => ({
  status: answer.status,
  challenges: valuesOf(answer, 'WWW-Authenticate'),
  caching: valuesOf(answer, 'Cache-Control'),
  vary: valuesOf(answer, 'Vary'),
})

const sessionCookie = /^koa\.sess(?:\.sig)?=/

// --- running

/**
 * The rules that a response breaks, whatever was expected. `ran` is how often an operation ran, `usual` is what the
 * response contains for every client.
 */
export const brokenBy = (
  request: CorpusRequest,
  macros: Macros,
  answer: RawAnswer,
  ran: number,
  usual: string = '',
): string[] => {
  const { status } = answer
  const reported = everything(answer)
  const cached = !/no-store|private/.test(valuesOf(answer, 'Cache-Control').join())
  return [
    ...(status === 'hang' ? ['it hangs'] : []),
    ...(typeof status === 'number' && status >= 500 && status !== 501 ? [`it answers ${status}`] : []),
    ...(status === 401 && valuesOf(answer, 'WWW-Authenticate').length === 0 ? ['401 without a challenge'] : []),
    ...((status === 401 || status === 403 || ran > 0) && cached ? ['caches may store it'] : []),
    ...(!isAccepted(answer) && ran > 0 ? [`the operation of a denied request ran ${ran} times`] : []),
    ...(!isAccepted(answer) && valuesOf(answer, 'Set-Cookie').some((cookie) => sessionCookie.test(cookie))
      ? ['a denied request sets a session cookie']
      : []),
    ...(isClientError(answer)
      ? secretsOf(request, macros)
          .filter((secret) => reported.includes(secret) && !usual.includes(secret))
          .map((secret) => `the answer repeats ${secret}`)
      : []),
  ]
}

/**
 * Runs a case: its expectation, its assertions, and all invariants of the file. An empty result means that all are
 * true.
 */
export const violationsOf = async (
  ground: Ground,
  { request, expect, maxMs, assert }: CorpusCase,
): Promise<string[]> => {
  const before = ground.calls()
  // of this process, which is the server, too: a busy machine does not change it
  const start = process.cpuUsage()
  const answer = await send(ground, request)
  const { user, system } = process.cpuUsage(start)
  const milliseconds = (user + system) / 1000
  const ran = ground.calls() - before
  const { status } = answer
  const contains = (where: string, words: ReadonlyArray<string> = []) =>
    words.filter((word) => where.toLowerCase().includes(word.toLowerCase())).map((word) => `it contains ${word}`)
  const again = await send(ground, request)
  const { path, method } = request
  const bare = await send(ground, {
    method,
    path: typeof path === 'string' ? path.split('?')[0]! : path,
    rawHeaders: [],
  })
  return [
    ...(isExpected(expect, status) ? [] : [`${status} instead of ${expect}`]),
    ...(maxMs !== undefined && milliseconds > maxMs ? [`it takes ${milliseconds} ms of the processor`] : []),
    ...contains(answer.body, assert?.bodyNotContains),
    ...contains(everything({ ...answer, body: '' }), assert?.headNotContains),
    ...brokenBy(request, ground.macros, answer, ran, everything(bare)),
    ...(again.status === status ? [] : [`${again.status} when sent again, ${status} before`]),
    ...(request.method === 'GET' && request.httpVersion !== '0.9' ? await headDiffers(ground, request, answer) : []),
  ]
}

const headDiffers = async (ground: Ground, request: CorpusRequest, got: RawAnswer): Promise<string[]> => {
  const head = await send(ground, { ...request, method: 'HEAD' })
  const [forHead, forGet] = [head, got].map((answer) => JSON.stringify(authHeaders(answer)))
  return forHead === forGet ? [] : [`HEAD answers ${forHead}, GET ${forGet}`]
}
