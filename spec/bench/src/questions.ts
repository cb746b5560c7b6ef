/**
 * The requests to the two applications: first to check that they send the same answers, then to measure how long they
 * take.
 */
import type { Question } from './alike.js'
import { basic, bearer } from './contestants.js'
import { headersOf, type Headers } from './stub.js'
import { cookieOf } from './twoApps.js'

const ask = (name: string, url: string, headers: Headers, status = 200): Question => ({
  name,
  url,
  headers: headersOf(headers),
  status,
})

/** A request that is timed, and its target compared with the check by hand. */
export interface Timed extends Question {
  readonly target?: number
}

/** One request for each kind. */
export const timed: ReadonlyArray<Timed> = [
  { ...ask('one bearer', '/bearer', bearer('supersecret')), target: 1.05 },
  { ...ask('third of a list of 3', '/list', { 'X-Key-3': 'supersecret' }), target: 1.08 },
  ask('first of a list of 3', '/list', { 'X-Key-1': 'supersecret' }),
  { ...ask('asynchronous hook, both with a time limit', '/late', bearer('supersecret')), target: 1.03 },
  { ...ask('Basic', '/basic', basic('anna:supersecret')), target: 1.05 },
  { ...ask('session', '/session', { Cookie: cookieOf('id') }), target: 1.08 },
  { ...ask('eight levels', '/levels', bearer('supersecret')), target: 1.08 },
  { ...ask('refused with 401', '/bearer', bearer('wrong'), 401), target: 1.15 },
  ask('list of 3, refused with 401', '/list', {}, 401),
  ask('asynchronous hook, refused with 401', '/late', bearer('wrong'), 401),
]

const bearerLike = (url: string): ReadonlyArray<Question> => [
  ask(`${url}: anonymous`, url, {}, 401),
  ask(`${url}: wrong`, url, bearer('wrong'), 401),
  ask(`${url}: malformed`, url, bearer('two words'), 401),
  ask(`${url}: no token`, url, { Authorization: 'Bearer' }, 401),
  ask(`${url}: another scheme`, url, basic('anna:supersecret'), 401),
  ask(`${url}: another spelling`, url, { Authorization: 'bearer   supersecret ' }),
  ask(`${url}: sent twice`, url, { Authorization: ['Bearer supersecret', 'Bearer supersecret'] }, 401),
]

/** A request that is sent once, before. */
export const questions: ReadonlyArray<Question> = [
  ...timed,
  ...['/bearer', '/late', '/levels'].flatMap(bearerLike),
  ask('Basic: anonymous', '/basic', {}, 401),
  ask('Basic: wrong', '/basic', basic('anna:wrong'), 401),
  ask('Basic: no colon', '/basic', basic('anna'), 401),
  ask('Basic: no base64', '/basic', { Authorization: 'Basic !' }, 401),
  ask('Basic: another scheme', '/basic', bearer('supersecret'), 401),
  ask('list: the second', '/list', { 'X-Key-2': 'supersecret' }),
  ask('list: a wrong one before', '/list', { 'X-Key-1': 'wrong', 'X-Key-3': 'supersecret' }),
  ask('list: wrong', '/list', { 'X-Key-2': 'wrong' }, 401),
  ask('list: sent twice', '/list', { 'X-Key-2': ['supersecret', 'supersecret'] }, 401),
  ask('session: anonymous', '/session', {}, 401),
  ask('session: over', '/session', { Cookie: cookieOf('other') }, 401),
  ask('session: forged', '/session', { Cookie: `${cookieOf('id')}x` }, 401),
  ask('no such route', '/nothing', {}, 404),
]

/** For applications with a short time limit. */
export const hanging: Question = ask('a hook that never answers', '/late', bearer('hangs'), 503)
