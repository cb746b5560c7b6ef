/** A store over one in another process, which can be killed. */
import { fork } from 'node:child_process'
import { join } from 'node:path'
import type { Store } from 'koa-with-auth/stores'
import type { Place, StoreAnswer, StoreQuestion } from './storeProcess.js'

/** The program of such a process, for `buildSite`. */
export const storeProgram = 'spec/support/stores/storeProcess'

/** A store in another process. Its calls reject once that has ended. */
export interface RemoteStore {
  readonly store: Store
  /** Kills the process as the system does (SIGKILL), and waits for its end. */
  readonly kill: () => Promise<void>
}

/** Starts a process with a store. */
export const remoteStore = (folder: string, place: Place): RemoteStore => {
  const child = fork(join(folder, `${storeProgram}.js`), [JSON.stringify(place)], { serialization: 'advanced' })
  const waiting = new Map<
    number,
    { readonly resolve: (value: unknown) => void; readonly reject: (error: Error) => void }
  >()
  let calls = 0
  let isOver = false
  child.on('message', ({ id, result, failure }: StoreAnswer) => {
    const caller = waiting.get(id)
    waiting.delete(id)
    if (failure === undefined) caller?.resolve(result)
    else caller?.reject(new Error(failure))
  })
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => {
      isOver = true
      for (const { reject } of waiting.values()) reject(new Error('the process has ended'))
      resolve()
    })
  })
  const call =
    (method: keyof Store) =>
    (...args: ReadonlyArray<unknown>): Promise<never> =>
      new Promise<unknown>((resolve, reject) => {
        if (isOver) return reject(new Error('the process has ended'))
        const id = ++calls
        waiting.set(id, { resolve, reject })
        child.send({ id, method, args } satisfies StoreQuestion, () => {})
        // Safe: the process calls this method of a store
      }) as Promise<never>
  return {
    store: {
      get: call('get'),
      insert: call('insert'),
      update: call('update'),
      end: call('end'),
      add: call('add'),
      members: call('members'),
    },
    kill: async () => {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** One store over several, each of which gets every so many calls. */
export const inTurn = (stores: ReadonlyArray<Store>): Store => {
  let turn = 0
  const next = (): Store => stores[turn++ % stores.length]!
  return {
    get: (keys) => next().get(keys),
    insert: (...args) => next().insert(...args),
    update: (...args) => next().update(...args),
    end: (...args) => next().end(...args),
    add: (...args) => next().add(...args),
    members: (set) => next().members(set),
  }
}
