/** What comes back from a provider: the parameters of an authorization response. */
import type { Answered, Incoming } from '../Kind.js'

/** The parameters that are read. `error_description` is not among them: it could say anything. */
export const responseFields = ['code', 'state', 'iss', 'error'] as const

/** A response that can be an answer: every parameter comes at most once, and there is either a code or an error. */
export interface Response {
  /** As a query. */
  readonly parameters: string
  readonly state: string
}

/** The longest response, in characters. */
const MAX_RESPONSE = 8192

/** Reads the response in a query; `undefined` if there is none. */
export const readResponse = ({ query }: Incoming): Answered<Response> | undefined => {
  const read = new URLSearchParams()
  for (const name of responseFields) {
    const [value, ...more] = query.getAll(name)
    if (more.length > 0) return undefined
    if (value !== undefined) read.set(name, value)
  }
  const { code, state, error } = Object.fromEntries(read)
  const parameters = read.toString()
  if (!state || (code ? error !== undefined : !error) || parameters.length > MAX_RESPONSE) return undefined
  return { handle: state, answer: { parameters, state } }
}
