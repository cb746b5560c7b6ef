/** The application in which a ceremony runs, as the request shows it. */
import type { Context } from 'koa'
import { requestSessionOf, type RequestSession } from '../sessions/RequestSession.js'
import { spentOver } from '../sessions/SessionStore.js'
import type { SessionHost } from '../sessions/SignInList.js'
import { ceremonies, type Ceremonies } from './ceremony.js'

/** An application whose users sign in. */
export interface Application {
  readonly ceremonies: Ceremonies
  readonly session: RequestSession
  readonly host: SessionHost
}

const ceremoniesOf = new WeakMap<SessionHost, Ceremonies>()

const isLoopback = (host: string): boolean =>
  /^(?:(?:[a-z0-9-]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/.test(host)

const originOf = ({ origin, isProduction }: SessionHost, { request }: Context): string => {
  if (origin !== undefined) return origin
  if (!isProduction && isLoopback(request.host)) return `${request.protocol}://${request.host}`
  throw new Error(
    'koa-with-auth/sign-in: write sessions(app, { origin: "https://shop.example" }), the public origin of the application; it is never read from the Host field',
  )
}

/** The application of a request. Throws if it has no sessions, or no origin. */
export const applicationOf = (caller: string, ctx: Context): Application => {
  const session = requestSessionOf(ctx)
  const { host } = session
  if (host === undefined) {
    throw new Error(
      `${caller}: call sessions(app, { origin, ... }) of koa-with-auth/sessions before the routers are mounted`,
    )
  }
  const { keys, name, store } = host
  const origin = originOf(host, ctx)
  const { spend } = spentOver(store)
  const make = () =>
    ceremonies({ keys, name, origin, spent: { spend: (id, lifetime) => spend(`${name}\n${id}`, lifetime) } })
  // without a configured origin, it is that of the request
  if (host.origin === undefined) return { ceremonies: make(), session, host }
  const made = ceremoniesOf.get(host) ?? make()
  ceremoniesOf.set(host, made)
  return { ceremonies: made, session, host }
}
