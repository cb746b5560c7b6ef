/**
 * How an application serves an upgrade. Koa itself runs it on a context of the application, responds, and reports
 * errors. Of the application's middleware, only settings and sessions run, by the part that they have for upgrades.
 */
import type Koa from 'koa'
import type { Middleware } from 'koa'
import { upgradeMark } from '../core/marks.js'

/** Makes the application's listener for upgrades, with middleware above and below the parts of the application. */
export const servedBy = (
  app: Koa,
  above: ReadonlyArray<Middleware>,
  below: ReadonlyArray<Middleware>,
): ReturnType<Koa['callback']> => {
  if (app.listenerCount('error') === 0) app.on('error', (error: Error) => app.onerror(error))
  // Safe: it inherits everything from the application
  const served = Object.create(app, {
    middleware: { value: [...above, ...partsOf(app), ...below] },
    createContext: { value: (...given: Parameters<Koa['createContext']>) => app.createContext(...given) },
  }) as Koa
  return served.callback()
}

const partsOf = ({ middleware }: Koa): ReadonlyArray<Middleware> =>
  middleware.flatMap((one) => {
    // Safe: only this package puts it there
    const part = Reflect.get(one, upgradeMark) as Middleware | undefined
    return part ?? []
  })
