/**
 * Decisions as metrics of OpenTelemetry. Their names are those of ASP.NET Core 10, which dashboards know:
 * https://learn.microsoft.com/aspnet/core/metrics/security
 *
 * Every attribute has only a few values, so their number does not grow with users or paths.
 */
import type { Attributes, Meter } from '@opentelemetry/api'
import { on, type Decision, type Outcome } from 'koa-with-auth/events'

// "none" is not an attempt: the caller sent no credential
const resultOf = ({ outcome, failure }: Decision): 'success' | 'failure' | 'none' => {
  if (outcome === 'accepted') return 'success'
  return outcome === 'anonymous' || failure === 'absent' ? 'none' : 'failure'
}

const broken: ReadonlyArray<Outcome> = ['unavailable', 'raised']

const attributesOf = ({ scheme, outcome }: Decision): Attributes => ({
  ...(scheme !== undefined && { 'aspnetcore.authentication.scheme': scheme }),
  ...(broken.includes(outcome) && { 'error.type': outcome }),
})

/** Records each decision with the instruments of a meter. Returns a function that ends it. */
export const measureDecisions = (meter: Meter): (() => void) => {
  const duration = meter.createHistogram('aspnetcore.authentication.authenticate.duration', {
    description: 'The authentication duration for a request.',
    unit: 's',
    // Half a microsecond for a table in memory, seconds for a directory
    advice: { explicitBucketBoundaries: [0.00001, 0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10] },
  })
  const challenges = meter.createCounter('aspnetcore.authentication.challenges', {
    description: 'The total number of times a scheme is challenged.',
    unit: '{request}',
  })
  const forbids = meter.createCounter('aspnetcore.authentication.forbids', {
    description:
      'The total number of times an authenticated user attempts to access a resource they are not permitted to.',
    unit: '{request}',
  })
  return on('decision', (decision) => {
    if (decision.outcome === 'public') return
    const attributes = attributesOf(decision)
    duration.record(decision.durationMs / 1000, {
      ...attributes,
      'aspnetcore.authentication.result': resultOf(decision),
    })
    if (decision.outcome === 'refused') challenges.add(1, attributes)
    if (decision.outcome === 'forbidden') forbids.add(1, attributes)
  })
}
