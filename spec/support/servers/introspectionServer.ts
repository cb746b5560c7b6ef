/** An authorization server whose answers about opaque tokens the test chooses (RFC 7662). */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { API, seconds } from './identityProvider.js'
import { restartable } from './server.js'

type Answering = (res: ServerResponse) => unknown
export type Answer = object | Answering

/** The answer about a good token, with the given changes; `undefined` leaves a member out. */
export const active = (over: object = {}) => ({
  active: true,
  aud: API,
  sub: 'anna',
  scope: 'read',
  exp: seconds() + 300,
  ...over,
})

/** Runs until the test has finished. `options` are those of an authenticator that asks it for each request. */
export const introspectionServer = async (answer: Answer = { active: false }) => {
  const asked: Record<'path' | 'authorization' | 'type' | 'body', string | undefined>[] = []
  // the discovery documents are by path
  const state: { answer: Answer; documents: Record<string, object> } = { answer, documents: {} }
  const handle = async (req: IncomingMessage, res: ServerResponse) => {
    const { authorization, 'content-type': type } = req.headers
    asked.push({ path: req.url, authorization, type, body: await text(req) })
    const says = req.method === 'GET' ? state.documents[req.url ?? ''] : state.answer
    // Safe: a function among the answers is one of these
    if (typeof says === 'function') return void (says as Answering)(res)
    if (says === undefined) res.writeHead(404)
    res.end(JSON.stringify(says))
  }
  const { origin: issuer } = await restartable((req, res) => void handle(req, res))
  const endpoint = `${issuer}/introspect`
  const client = { id: 'api', secret: 's3cret' }
  return { issuer, endpoint, asked, state, options: { endpoint, client, audience: API, cache: false } as const }
}
