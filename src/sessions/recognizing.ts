/**
 * Reads a session: who is signed in by it, and whether it is over.
 *
 * If the id says who is probably signed in, the session and the mark of its user are read at the same time.
 */
import type { KoaSessionStore } from './koaSessionStore.js'
import { requestSessionOf } from './RequestSession.js'
import type { SessionIds } from './sessionIds.js'
import type { SessionStore } from './SessionStore.js'

/**
 * A store for koa-session. `get` resolves to `undefined` in an outage and for a session that is over, and removes
 * forged sign-ins.
 */
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
        // A sign-in of the future is over, too: the clock was wrong when the user signed in
        const isOld = Math.abs(Date.now() - auth.at) >= absolute
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

// Reads the mark of the user who is probably signed in while the session is read: both take one round trip
const markedAsLikely = (store: SessionStore, likely: string | undefined): ((user: string) => Promise<string>) => {
  if (likely === undefined) return (user) => store.markOf(user)
  const mark = store.markOf(likely)
  // if the session is gone, the mark is not needed, and its failure does not matter
  mark.catch(() => undefined)
  return (user) => (user === likely ? mark : store.markOf(user))
}
