/**
 * The combinators around one tree as data, and the state of the world that outlives a request. `evaluatorAround.ts` has
 * their results.
 */
import type { Outcome, Tree, Verdict } from './evaluator.js'

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
  | { readonly node: 'remembered'; readonly id: string; readonly member: Tree; readonly by: string }
  | { readonly node: 'throttled'; readonly id: string; readonly member: Tree; readonly by: string }

/** Combinators that keep something of each credential. */
export type Kept = Extract<Around, { readonly by: string }>

/** How long `remembered` keeps a result, and how many guesses `throttled` allows in a window, by name. */
export const maxAges: Readonly<Record<string, number>> = { brief: 1000, long: 20_000 }
export const points: Readonly<Record<string, number>> = { few: 1, more: 3 }
export const WINDOW = 60_000
/** How long others wait for a verification that does not settle. */
export const PATIENCE = 10_000

/** A guess that stays counted while its request lasts. */
export interface Counted {
  readonly sent: unknown
  readonly by: string
  readonly entry: { guesses: number; readonly end: number }
}

/** A moment: the time that passed, and the system clock, which can be set. */
export interface Moment {
  readonly now: number
  readonly date: number
}

/** The state that outlives a request, and the state of the present one. */
export interface World {
  now: number
  /** The system clock, which can be set. */
  date: number
  address: string
  crossSite: boolean
  held: ReadonlyArray<Counted>
  recovered: boolean
  readonly kept: Map<string, { readonly verdict: Verdict; readonly since: Moment; readonly expiresAt: number }>
  readonly silent: Map<string, Moment>
  readonly guesses: Map<string, Counted['entry']>
  readonly refused: Map<string, Map<string, number>>
}

/** The state at the beginning. */
export const newWorld = (): World => ({
  now: 0,
  date: 0,
  address: '',
  crossSite: false,
  held: [],
  recovered: false,
  kept: new Map(),
  silent: new Map(),
  guesses: new Map(),
  refused: new Map(),
})

/** A hook that does not settle. */
export class Silent extends Error {}

/** `forget` of a combinator: it forgets everything. */
export const forget = ({ kept, silent }: World, by: string): void => {
  for (const map of [kept, silent]) for (const key of map.keys()) if (key.startsWith(`${by} `)) map.delete(key)
}
