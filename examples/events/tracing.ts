/**
 * Decisions as attributes of the span of their request, under OpenTelemetry's instrumentation of HTTP and of Koa.
 *
 * A record is published while the answer ends, when the spans of Koa's middleware have ended and that of the request has not: it is
 * the active one. A client that went away leaves none.
 */
import { trace } from '@opentelemetry/api'
import { onDecision } from 'koa-with-auth/events'

/** Sets attributes for each decision; returns a function that ends it. */
export const traceDecisions = (): (() => void) =>
  onDecision(({ outcome, failure, scheme, level, durationMs }) => {
    trace.getActiveSpan()?.setAttributes({
      'auth.outcome': outcome,
      'auth.level': level,
      'auth.duration_ms': durationMs,
      ...(failure !== undefined && { 'auth.failure': failure }),
      ...(scheme !== undefined && { 'auth.scheme': scheme }),
    })
  })
