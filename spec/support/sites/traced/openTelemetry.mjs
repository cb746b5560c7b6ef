/** Sets up OpenTelemetry's Koa instrumentation, for `node --import`. Its spans are kept in memory. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { createRequire, register } from 'node:module'
import { context, ROOT_CONTEXT, trace } from '@opentelemetry/api'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'

register('@opentelemetry/instrumentation/hook.mjs', import.meta.url)
const require = createRequire(import.meta.url)
const { registerInstrumentations } = require('@opentelemetry/instrumentation')
const { KoaInstrumentation } = require('@opentelemetry/instrumentation-koa')

const storage = new AsyncLocalStorage()
const manager = {
  active: () => storage.getStore() ?? ROOT_CONTEXT,
  with: (active, f, thisArg, ...args) => storage.run(active, () => Reflect.apply(f, thisArg, args)),
  bind: (active, target) =>
    typeof target === 'function' ? (...args) => storage.run(active, () => target(...args)) : target,
  enable: () => manager,
  disable: () => manager,
}
context.setGlobalContextManager(manager)
const exporter = new InMemorySpanExporter()
const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
trace.setGlobalTracerProvider(tracerProvider)
registerInstrumentations({ instrumentations: [new KoaInstrumentation()], tracerProvider })

globalThis.traced = () => {
  exporter.reset()
  return {
    // As an instrumentation of node:http would do
    use: (app) =>
      app.use((ctx, next) => {
        const span = trace.getTracer('site').startSpan(ctx.path)
        return context.with(trace.setSpan(context.active(), span), next).finally(() => span.end())
      }),
    result: () =>
      [...new Set(exporter.getFinishedSpans().map(({ name }) => name))].filter((name) => name.startsWith('router')),
  }
}
