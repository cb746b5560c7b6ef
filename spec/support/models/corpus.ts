/**
 * The requests of `spec/data/bad-inputs.json`: their bytes, the answers that they must get, and what must hold for
 * each.
 */
import { readFileSync } from 'node:fs'
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
  readonly expect: string
  readonly why: string
  readonly tags?: ReadonlyArray<string>
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
  }
  readonly cases: ReadonlyArray<CorpusCase>
}

// Safe: the file belongs to this repository, and describes its format
export const corpus = JSON.parse(
  readFileSync(new URL('../../data/bad-inputs.json', import.meta.url), 'utf8'),
) as unknown as Corpus

/** The values of `{{...}}`. */
export type Macros = Readonly<Record<string, string>>

/** A server on which cases run, its macros, and how often its operations have run. */
export interface Ground {
  readonly port: number
  readonly macros: Macros
  readonly calls: () => number
}

// -------------------------------------------------------------------------------------
// bytes
// -------------------------------------------------------------------------------------

const expand =
  (macros: Macros) =>
  (text: Text): string => {
    const plain = typeof text === 'string' ? text : text.prefix + text.repeat.repeat(text.times) + text.suffix
    return plain.replace(/\{\{([a-z.]+)\}\}/g, (_all, name: string) => {
      const value = macros[name]
      if (value === undefined) throw new Error(`no macro ${name}`)
      return value
    })
  }

/** A request as it is sent over the socket, one character for each byte. */
export const bytesOf = (request: CorpusRequest, macros: Macros): string => {
  const { method, path, rawHeaders, body, httpVersion = '1.1', omitHost = false, repeatHeader } = request
  const text = expand(macros)
  if (httpVersion === '0.9') return `${method} ${text(path)}\r\n\r\n`
  const has = (name: string) => rawHeaders.some(([given]) => given.toLowerCase() === name)
  const content = body === undefined ? '' : text(body)
  const sized = body === undefined || has('content-length') || has('transfer-encoding')
  const fillers = Array.from(
    { length: repeatHeader?.times ?? 0 },
    () => `${repeatHeader?.name}: ${repeatHeader?.value}\r\n`,
  ).join('')
  return [
    `${method} ${text(path)} HTTP/${httpVersion}\r\n`,
    // Host comes before the fillers, because Node itself refuses a request without it
    has('host') || omitHost ? '' : `Host: ${text('{{host}}')}\r\n`,
    repeatHeader?.at === 'start' ? fillers : '',
    ...rawHeaders.map(([name, value]) => `${text(name)}${value === null ? '' : `: ${text(value)}`}\r\n`),
    repeatHeader?.at === 'start' ? '' : fillers,
    has('connection') ? '' : 'Connection: close\r\n',
    sized ? '' : `Content-Length: ${content.length}\r\n`,
    `\r\n${content}`,
  ].join('')
}

// A response on a connection that stays open is complete long before this
const patience = (bytes: string): number => (/^connection:.*close/im.test(bytes) ? 5000 : 700)

/** Sends a request of the corpus. */
export const send = ({ port, macros }: Ground, request: CorpusRequest): Promise<RawAnswer> => {
  const bytes = bytesOf(request, macros)
  return sendRaw(port, bytes, patience(bytes))
}

// -------------------------------------------------------------------------------------
// expectations
// -------------------------------------------------------------------------------------

/** Whether a status, or what happened instead, is the expected one. */
export const isExpected = (expect: string, status: RawAnswer['status']): boolean => {
  if (expect === 'never-2xx') return typeof status === 'number' && ((status >= 300 && status < 500) || status === 501)
  if (expect === 'either') return typeof status === 'number' && status < 500
  return expect.split('|').includes(String(status))
}

const isAccepted = ({ status }: RawAnswer): boolean => typeof status === 'number' && status >= 200 && status < 300

const isClientError = ({ status }: RawAnswer): boolean => typeof status === 'number' && status >= 400 && status < 500

const harmless = /^(?:host|connection|content-length|content-type|transfer-encoding|trailer|upgrade|range)$/i

// A response may name the fields of a form
const fieldNames = ['username', 'password']

/** What a client sent in confidence: credentials, keys, cookies, query values, as sent and decoded. */
export const secretsOf = ({ path, rawHeaders, body = '' }: CorpusRequest, macros: Macros): string[] => {
  const text = expand(macros)
  const query = text(path).split('?').slice(1).join('?')
  const fields = rawHeaders.flatMap(([name, value]) => (harmless.test(name) || value === null ? [] : [text(value)]))
  const pieces = [...fields, query, text(body)].flatMap((sent) => [sent, ...sent.split(/[\s,;&"]+/)])
  const values = pieces.flatMap((piece) => [piece, piece.slice(piece.indexOf('=') + 1)])
  const decoded = values.flatMap((value) => [
    ...new URLSearchParams(`v=${value}`).getAll('v'),
    ...Buffer.from(value, 'base64').toString('latin1').split(':'),
  ])
  // Shorter ones occur by chance
  return [...new Set([...values, ...decoded])].filter((secret) => secret.length >= 4 && !fieldNames.includes(secret))
}

const everything = ({ headers, body }: RawAnswer): string =>
  [...headers.map(([name, value]) => `${name}: ${value}`), body].join('\n')

const authHeaders = (answer: RawAnswer) => ({
  status: answer.status,
  challenges: valuesOf(answer, 'WWW-Authenticate'),
  caching: valuesOf(answer, 'Cache-Control'),
  vary: valuesOf(answer, 'Vary'),
})

const sessionCookie = /^koa\.sess(?:\.sig)?=/

// -------------------------------------------------------------------------------------
// running
// -------------------------------------------------------------------------------------

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
  const answer = await send(ground, request)
  const ran = ground.calls() - before
  const { status, milliseconds } = answer
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
    ...(maxMs !== undefined && milliseconds > maxMs ? [`it takes ${milliseconds} ms`] : []),
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
