/** The small examples together, below `/examples`. */
import Router from '@koa/router'
import Koa from 'koa'
import * as apiKey from './apiKey.js'
import * as asynchronous from './asynchronous.js'
import * as basic from './basic.js'
import * as bearer from './bearer.js'
import * as composing from './composing.js'
import * as ipAllowList from './ipAllowList.js'
import * as levels from './levels.js'
import * as multiple from './multiple.js'
import * as ownKind from './ownKind.js'
import * as session from './session.js'
import * as stream from './stream.js'

/** An application that signs its session cookies with these keys. */
export const application = (keys: string[]): Koa => {
  const app = new Koa()
  app.keys = keys
  // a client that leaves a stream is no error
  app.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ERR_STREAM_PREMATURE_CLOSE') app.onerror(error)
  })
  const examples = new Router({ prefix: '/examples' })
  examples.use(bearer.router.routes())
  examples.use(basic.router.routes())
  examples.use(apiKey.router.routes())
  examples.use(multiple.router.routes())
  examples.use(ipAllowList.router.routes())
  examples.use(session.router.routes())
  examples.use(levels.router.routes())
  examples.use(asynchronous.router.routes())
  examples.use(composing.router.routes())
  examples.use(ownKind.router.routes())
  examples.use(stream.router.routes())
  return app.use(session.sessions(app)).use(examples.routes()).use(examples.allowedMethods())
}
