/**
 * Decisions as attributes of the span of their request, with OpenTelemetry's instrumentation of HTTP and of Koa.
 *
 * A record is published while the response ends. Then the spans of Koa's middleware have ended, and the span of the
 * request is the active one. A client that disconnects leaves no attributes.
 */
import { trace } from '@opentelemetry/api'
import { on } from 'koa-with-auth/events'

/** Sets attributes for each decision. Returns a function that ends it. */
export const traceDecisions = (): (() => void) =>
  on('decision', ({ outcome, failure, scheme, level, durationMs }) => {
    trace.getActiveSpan()?.setAttributes({
      'auth.outcome': outcome,
      'auth.level': level,
      'auth.duration_ms': durationMs,
      ...(failure !== undefined && { 'auth.failure': failure }),
      ...(scheme !== undefined && { 'auth.scheme': scheme }),
    })
  })
