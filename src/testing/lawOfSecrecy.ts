/**
 * The law of secrecy: no credential that was sent stands in what a failure tells, in the response it becomes, in an exception.
 */
import { inspect } from 'node:util'
import { defaultErrorMapper } from '../core/ErrorMapper.js'
import { attacksOn, lawAbout, type Law } from './lawsOfVerdicts.js'
import { valuesAt } from './Place.js'
import { crossSite } from './requests.js'
import { together, type Sketch } from './Sketch.js'
import type { Subject } from './Subject.js'
import type { Verdict } from './Verdict.js'

interface Asked {
  readonly what: string
  readonly sketch: Sketch
  readonly secrets: ReadonlyArray<string>
}

const MIN_SECRET = 8

// Also good credentials, refused for another reason
const asking = (subject: Subject): ReadonlyArray<Asked> => [
  ...attacksOn(subject).filter(({ secrets }) => secrets.length > 0),
  ...subject.valid.map((sketch) => ({
    what: 'a write from another site',
    sketch: { ...together(sketch, crossSite), method: 'POST' },
    secrets: subject.places.flatMap((place) => valuesAt(place, sketch)).filter((value) => value.length >= MIN_SECRET),
  })),
]

/** A credential as it can stand in a text: as it is, in base64, in a URL. */
export const traces = (secret: string): ReadonlyArray<string> => {
  const base64 = Buffer.from(secret).toString('base64').replace(/=+$/, '')
  return [
    ...new Set([secret, base64, Buffer.from(`${secret}:${secret}`).toString('base64'), encodeURIComponent(secret)]),
  ]
}

/** The first of these secrets that a text holds. */
export const leaked = (text: string, secrets: ReadonlyArray<string>): string | undefined =>
  secrets.find((secret) => traces(secret).some((trace) => text.includes(trace)))

const everything = { depth: null, maxStringLength: null, maxArrayLength: null, showHidden: false } as const

const toldBy = (verdict: Verdict, sketch: Sketch, { requestOf }: Subject): string => {
  switch (verdict._tag) {
    case 'Failed':
      return [inspect(verdict.error, everything), mapped(verdict.error, sketch, requestOf)].join('\n')
    case 'Threw':
      return inspect(verdict.error, everything)
    default:
      return ''
  }
}

const mapped = (error: Parameters<typeof defaultErrorMapper>[0], sketch: Sketch, requestOf: Subject['requestOf']) =>
  JSON.stringify(defaultErrorMapper(error, requestOf(sketch)))

/** Nothing that was sent comes back. */
export const secrecy: Law = lawAbout<Asked>(
  'leaks nothing: no credential that was sent stands in a failure, a challenge or an exception',
  asking,
  (verdict, { sketch, secrets }, subject) =>
    leaked(toldBy(verdict, sketch, subject), secrets) === undefined
      ? undefined
      : 'leave what was sent out of failures, challenges and messages of exceptions: they come to logs and to the client',
)
