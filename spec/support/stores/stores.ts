/** Every engine of `Store` with its real database, and stores that note what they are asked, or stop in the middle of a change. */
import type { Store } from 'koa-with-auth/stores'
import { duringSuite } from '../runs/duringSuite.js'
import { aroundStore } from './aroundStore.js'
import { describeEveryEngine } from './databases.js'

/** Runs a suite over every engine, on one store for the whole suite. */
export const overEveryStore = (suite: (store: () => Store, name: string) => void): void =>
  describeEveryEngine((make, name) =>
    suite(
      duringSuite(make, () => {}),
      name,
    ),
  )

/** A store whose methods each wait for a step of a scheduler, by the name of the method. */
export const steppedStore = (store: Store, step: <A>(name: string, run: () => A | Promise<A>) => Promise<A>): Store =>
  aroundStore(
    () => store,
    (method, _args, ask) => step(method, ask),
  )

/** A store that notes which of its methods are called, in order, and with which arguments. */
export const noting = (store: Store) => {
  const calls: string[] = []
  const given: Array<ReadonlyArray<unknown>> = []
  const noted = aroundStore(
    () => store,
    (method, args, ask) => {
      calls.push(method)
      given.push(args)
      return ask()
    },
  )
  return { store: noted, calls, given }
}

/** A store that fails from one of its writes on, before that write or after it, as if the process or the database had died there. */
export const dyingAt = (store: Store, write: number, after: boolean) => {
  let writes = 0
  let isDead = false
  const down = () => Promise.reject(new Error('ECONNRESET'))
  const dying = aroundStore(
    () => store,
    (method, _args, ask) => {
      if (isDead) return down()
      if (method === 'get' || method === 'members' || ++writes < write) return ask()
      isDead = true
      return after ? Promise.resolve(ask()).then(down) : down()
    },
  )
  return { store: dying, died: () => isDead }
}
