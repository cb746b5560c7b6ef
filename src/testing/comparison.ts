/**
 * Requests that differ in one id, and their answers: how an id is written in a path, what of an answer counts, and a command that repeats
 * a request. `expectIsolated` compares them.
 */
import type { HttpResponse, SentRequest } from './probing.js'

const percentEncoded = (value: string): string =>
  [...Buffer.from(value)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('')
const otherCase = (value: string): string => (value === value.toUpperCase() ? value.toLowerCase() : value.toUpperCase())

/** How an id can be written so that a careless look-up still finds it. */
export const spellings: Readonly<Record<string, (value: string) => string>> = {
  'as it is': encodeURIComponent,
  'percent-encoded': percentEncoded,
  'percent-encoded twice': (value) => encodeURIComponent(percentEncoded(value)),
  'in the other case': (value) => encodeURIComponent(otherCase(value)),
  'with a blank behind it': (value) => `${encodeURIComponent(value)}%20`,
  'with a dot behind it': (value) => `${encodeURIComponent(value)}.`,
}

/** How an id that was asked for may be repeated in an answer. */
const writtenForms = (id: string, spell: (value: string) => string): ReadonlyArray<string> => [
  spell(id),
  percentEncoded(id),
  otherCase(id),
  id,
]

const mayDiffer =
  /^(?:date|connection|keep-alive|traceparent|server-timing|x-response-time|(?:x-)?(?:request|correlation|trace)-id|(?:x-)?ratelimit.*)$/

// What was asked for may be repeated. Of cookies, the names count, because a session that is prolonged has another time
export const comparable = (
  answer: HttpResponse,
  ids: ReadonlyArray<string>,
  spell: (value: string) => string,
  ignored: ReadonlySet<string>,
  hasLength: boolean,
): ReadonlyMap<string, string> => {
  const asked = ids.flatMap((id) => writtenForms(id, spell)).filter((id) => id !== '')
  const plain = (text: string): string => asked.reduce((before, id) => before.replaceAll(id, '<id>'), text)
  const parts = new Map([
    ['the status', String(answer.status)],
    ['the body', plain(answer.body)],
  ])
  for (const [field, value] of answer.lines) {
    const name = field.toLowerCase()
    if (ignored.has(name) || mayDiffer.test(name) || (!hasLength && name === 'content-length')) continue
    const counted = name === 'set-cookie' ? (value.split('=')[0] ?? '') : plain(value)
    parts.set(name, `${parts.get(name) ?? ''}\n${counted}`)
  }
  return parts
}

/** The parts of an answer that differ: names of header fields, `the status`, `the body`. */
export const differing = (
  one: ReadonlyMap<string, string>,
  other: ReadonlyMap<string, string>,
): ReadonlyArray<string> =>
  [...new Set([...one.keys(), ...other.keys()])].filter((part) => one.get(part) !== other.get(part))

const shellQuoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

const curl = ({ method = 'GET', url = '/', fields = [], body }: SentRequest): string =>
  [
    method === 'HEAD' ? 'curl -I' : `curl -i -X ${method}`,
    `"$URL"${shellQuoted(url)}`,
    ...fields.map(([name, value]) => `-H ${shellQuoted(`${name}: ${value}`)}`),
    ...(body === undefined ? [] : [`-d ${shellQuoted(body)}`]),
  ].join(' ')

export const shown = ({
  spec,
  answer,
}: {
  readonly spec: SentRequest
  readonly answer: HttpResponse | Error
}): string => {
  const answered =
    answer instanceof Error ? `no answer: ${answer.message}` : `${answer.status} ${answer.body.slice(0, 120)}`
  return `${curl(spec)}\n${answered}`
}

// `order-1` is not in `order-10`
export const hasWord = (text: string, word: string): boolean => {
  for (let at = text.indexOf(word); at !== -1; at = text.indexOf(word, at + 1)) {
    if (!/\w/.test(text[at - 1] ?? ' ') && !/\w/.test(text[at + word.length] ?? ' ')) return true
  }
  return false
}
