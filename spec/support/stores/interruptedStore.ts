/** A store of sessions in memory that runs other code between the reading of a session and the decision about it. */
import { memoryStore, type Store } from 'koa-with-auth/stores'

/** `meanwhile` runs once, while a session and the stamp of its user are being read. */
export const interruptedStore = () => {
  const kept = memoryStore()
  const meanwhile: Array<() => Promise<unknown>> = []
  const get = async (keys: ReadonlyArray<string>) => {
    const texts = await kept.get(keys)
    for (const run of meanwhile.splice(0)) await run()
    return texts
  }
  const store: Store = { ...kept, get }
  return { store, meanwhile }
}
