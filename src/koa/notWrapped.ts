/**
 * Keeps the marks of functions under OpenTelemetry's Koa instrumentation, which Sentry uses too.
 *
 * At `app.use(router.routes())` it replaces each function of each layer by one without its properties. Then the guard
 * could not be found any more. It does not replace functions whose constructor is named `GeneratorFunction`: middleware
 * of Koa 1, which it cannot wrap. So marked functions claim to be such middleware, and get no span. Koa itself does not
 * read `constructor`. `spec/package/tracers.http.spec.ts` pins this.
 */
const constructor = { value: { name: 'GeneratorFunction' }, configurable: true }

/** Keeps tracers from wrapping a function. */
export const notWrapped = <F extends Function>(f: F): F => Object.defineProperty(f, 'constructor', constructor)
