/**
 * How an application serves an upgrade: Koa itself runs it on a context of the application, answers, and reports its errors. Of the
 * application's middleware only what has a part for upgrades (settings, sessions) is run, by that part.
 */
import type Koa from 'koa'
import type { Middleware } from 'koa'
import { upgradeMark } from '../core/marks.js'

/** The listener of an application for upgrades, with middleware above and below the application's own parts. */
export const servedBy = (
  app: Koa,
  above: ReadonlyArray<Middleware>,
  below: ReadonlyArray<Middleware>,
): ReturnType<Koa['callback']> => {
  if (app.listenerCount('error') === 0) app.on('error', (error: Error) => app.onerror(error))
  // Safe: it has all that an application has
  const served = Object.create(app, {
    middleware: { value: [...above, ...partsOf(app), ...below] },
    createContext: { value: (...given: Parameters<Koa['createContext']>) => app.createContext(...given) },
  }) as Koa
  return served.callback()
}

const partsOf = ({ middleware }: Koa): ReadonlyArray<Middleware> =>
  middleware.flatMap((one) => {
    // Safe: this package alone puts it there
    const part = Reflect.get(one, upgradeMark) as Middleware | undefined
    return part ?? []
  })
