/**
 * The combinators around one tree as data, and the state of the world that outlives a request. `evaluatorAround.ts` has
 * their results.
 */
import type { Outcome, Tree } from './evaluator.js'

/** A combinator around one tree. `by` says which of several it is; equal ones share their state. */
export type Around =
  | {
      readonly node: 'map'
      readonly id: string
      readonly member: Tree
      readonly result: 'wraps' | 'throws' | 'nothing'
    }
  | {
      readonly node: 'flatMap' | 'recover'
      readonly id: string
      readonly member: Tree
      readonly outcome: Outcome
      readonly late: boolean
    }
  | { readonly node: 'timeout'; readonly member: Tree }
  | { readonly node: 'throttled'; readonly id: string; readonly member: Tree; readonly by: string }

/** Combinators that keep something of each credential. */
export type Kept = Extract<Around, { readonly by: string }>

/** How many guesses `throttled` allows in a window, by name. */
export const points: Readonly<Record<string, number>> = { few: 1, more: 3 }
export const WINDOW = 60_000

/** A guess that stays counted while its request lasts. */
interface Counted {
  readonly sent: unknown
  readonly by: string
  readonly entry: { guesses: number; readonly end: number }
}

/** The state that outlives a request, and the state of the present one. */
export interface World {
  now: number
  address: string
  crossSite: boolean
  held: ReadonlyArray<Counted>
  recovered: boolean
  readonly guesses: Map<string, Counted['entry']>
}

/** The state at the beginning. */
export const newWorld = (): World => ({
  now: 0,
  address: '',
  crossSite: false,
  held: [],
  recovered: false,
  guesses: new Map(),
})

/** A hook that does not settle. */
export class Silent extends Error {}
