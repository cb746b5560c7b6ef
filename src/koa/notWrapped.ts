/**
 * How functions of this package keep their marks under OpenTelemetry's Koa instrumentation, which Sentry uses too.
 *
 * At `app.use(router.routes())` it replaces each function of each layer by one that has none of its properties. After that, no
 * reader could find the guard. It leaves functions alone whose constructor is named `GeneratorFunction`: middleware of
 * Koa 1, which it cannot wrap. So functions with a mark say that of themselves; they get no span. Koa itself does not look at
 * `constructor`. `spec/package/tracers.http.spec.ts` pins this.
 */
const constructor = { value: { name: 'GeneratorFunction' }, configurable: true }

/** Asks tracers to leave a function as it is. */
export const notWrapped = <F extends Function>(f: F): F => Object.defineProperty(f, 'constructor', constructor)
