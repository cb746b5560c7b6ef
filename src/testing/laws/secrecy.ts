/**
 * The law of secrecy: no credential that was sent is in a failure, in its response, or in an exception.
 */
import { inspect } from 'node:util'
import { defaultErrorMapper } from '../../core/ErrorMapper.js'
import { leaked } from '../attacks/leaked.js'
import { attacksOn, lawAbout, type Law } from './verdicts.js'
import { valuesAt } from '../request/CredentialLocation.js'
import { crossSite } from '../request/fixedRequests.js'
import { mergeRequests, type RequestSpec } from '../request/RequestSpec.js'
import type { Subject } from './Subject.js'
import type { Verdict } from './Verdict.js'

interface Asked {
  readonly what: string
  readonly spec: RequestSpec
  readonly secrets: ReadonlyArray<string>
}

const MIN_SECRET = 8

// Also with valid credentials that are refused for another reason
const asking = (subject: Subject): ReadonlyArray<Asked> => [
  ...attacksOn(subject).filter(({ secrets }) => secrets.length > 0),
  ...subject.valid.map((spec) => ({
    what: 'a write from another site',
    spec: { ...mergeRequests(spec, crossSite), method: 'POST' },
    secrets: subject.locations.flatMap((place) => valuesAt(place, spec)).filter((value) => value.length >= MIN_SECRET),
  })),
]

const everything = { depth: null, maxStringLength: null, maxArrayLength: null, showHidden: false } as const

const toldBy = (verdict: Verdict, spec: RequestSpec, { requestOf }: Subject): string => {
  switch (verdict._tag) {
    case 'Failed':
      return [inspect(verdict.error, everything), mapped(verdict.error, spec, requestOf)].join('\n')
    case 'Threw':
      return inspect(verdict.error, everything)
    default:
      return ''
  }
}

const mapped = (error: Parameters<typeof defaultErrorMapper>[0], spec: RequestSpec, requestOf: Subject['requestOf']) =>
  JSON.stringify(defaultErrorMapper(error, requestOf(spec)))

/** No credential that was sent comes back. */
export const secrecy: Law = lawAbout<Asked>(
  'leaks nothing: no credential that was sent is in a failure, a challenge or an exception',
  asking,
  (verdict, { spec, secrets }, subject) =>
    leaked(toldBy(verdict, spec, subject), secrets) === undefined
      ? undefined
      : 'leave what was sent out of failures, challenges and messages of exceptions: they end up in logs and at the client',
)
