/**
 * Sessions in this process, for development and tests. They are lost when it ends, and no other process knows them.
 */
import { declareFactory } from '../core/hooks.js'
import type { SessionStore } from './SessionStore.js'

interface Kept {
  /** `undefined`: the session was ended. */
  readonly text: string | undefined
  readonly until: number
}

const SWEEP_EVERY = 1000

/**
 * A store that keeps sessions in memory, and drops expired ones.
 *
 * @example
 * import { memoryStore } from 'koa-with-auth/sessions'
 *
 * const store = memoryStore()
 */
export const memoryStore = (): SessionStore => {
  const sessions = new Map<string, Kept>()
  const marks = new Map<string, Kept>()
  let writes = 0
  const live = (kept: Map<string, Kept>, key: string): Kept | undefined => {
    const found = kept.get(key)
    return found !== undefined && found.until > Date.now() ? found : undefined
  }
  const keep = (kept: Map<string, Kept>, key: string, text: string | undefined, lifetime: number): void => {
    kept.set(key, { text, until: Date.now() + lifetime })
    if (++writes % SWEEP_EVERY !== 0) return
    for (const all of [sessions, marks]) {
      for (const [one, { until }] of all) if (until <= Date.now()) all.delete(one)
    }
  }
  const done = Promise.resolve()
  return {
    read: (id) => Promise.resolve(live(sessions, id)?.text),
    insert: (id, text, lifetime) => {
      if (live(sessions, id) === undefined) keep(sessions, id, text, lifetime)
      return done
    },
    update: (id, text, lifetime) => {
      const isThere = live(sessions, id)?.text !== undefined
      if (isThere) keep(sessions, id, text, lifetime)
      return Promise.resolve(isThere)
    },
    end: (id, lifetime) => {
      keep(sessions, id, undefined, lifetime)
      return done
    },
    markOf: (user) => Promise.resolve(live(marks, user)?.text ?? ''),
    mark: (user, mark, lifetime) => {
      keep(marks, user, mark, lifetime)
      return done
    },
  }
}

declareFactory('memoryStore', memoryStore)
