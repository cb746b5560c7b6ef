/**
 * Reading a session: who is signed in by it, and whether it is over.
 *
 * The session and the mark of its user are asked for at the same time, where its id says who is likely to be signed in.
 */
import type { KoaSessionStore } from './koaSessionStore.js'
import { requestSessionOf } from './RequestSession.js'
import type { SessionIds } from './sessionIds.js'
import type { SessionStore } from './SessionStore.js'

/** A store for koa-session that resolves to nothing in an outage and for a session that is over, and to no forged sign-in. */
export const recognizing = (
  kept: KoaSessionStore,
  store: SessionStore,
  absolute: number,
  ids: SessionIds,
): KoaSessionStore => ({
  ...kept,
  get: async (id, maxAge, options) => {
    const session = requestSessionOf(options.ctx ?? {})
    try {
      const likely = ids.userOf(id)
      const reading = kept.get(id, maxAge, options)
      const markOf = markedAsLikely(store, likely)
      const data = await reading
      if (typeof data !== 'object' || data === null) return undefined
      const auth = session.recognized(id, data)
      if (auth === undefined) Reflect.deleteProperty(data, 'auth')
      else {
        const isOld = auth.at + absolute <= Date.now()
        if (isOld || (await markOf(auth.id)) !== auth.mark) {
          session.seenOver(id, data, isOld ? 'absolute' : 'logOutEverywhere')
          return undefined
        }
      }
      return data
    } catch (error) {
      session.stored.failed(error)
      return undefined
    }
  },
})

// Asks for the mark of who is likely to be signed in while the session is read: both answers come in one round trip
const markedAsLikely = (store: SessionStore, likely: string | undefined): ((user: string) => Promise<string>) => {
  if (likely === undefined) return (user) => store.markOf(user)
  const mark = store.markOf(likely)
  // a session that is gone needs no mark, nor what it failed with
  mark.catch(() => undefined)
  return (user) => (user === likely ? mark : store.markOf(user))
}
