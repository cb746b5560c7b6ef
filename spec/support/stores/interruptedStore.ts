/** A store of sessions in memory that runs other code between the reading of a session and the decision about it. */
import { memoryStore, type SessionStore } from 'koa-with-auth/sessions'

/** `meanwhile` runs once, after a session was read and before its mark is. */
export const interruptedStore = (): {
  readonly store: SessionStore
  readonly meanwhile: Array<() => Promise<unknown>>
} => {
  const store = memoryStore()
  const meanwhile: Array<() => Promise<unknown>> = []
  const markOf = async (user: string) => {
    const mark = await store.markOf(user)
    for (const run of meanwhile.splice(0)) await run()
    return mark
  }
  return { store: { ...store, markOf }, meanwhile }
}
