/**
 * Compares two patterns by the product construction: both automata read the same path, and the pairs of their state
 * sets are searched breadth first, for a path that both accept, or that only the first accepts.
 *
 * The alphabet is finite, because one character can represent all that neither pattern names: they have the same
 * transitions. A result is a shortest path, confirmed by the RegExps of the router. No result is a proof that there is
 * no such path.
 *
 * @see https://en.wikipedia.org/wiki/Powerset_construction
 */
import { accepts, move, type PathPattern } from './PathPattern.js'

/** The result of a search. */
export type Found = { readonly path: string } | 'none' | 'unknown'

/** Which paths to search for. */
export type Wanted = 'of both' | 'of the first alone'

// Pairs of state sets. The patterns of a hundred routers stay far below it
const MAX_PAIRS = 5000

/** A pair of state sets, and a path that leads to it. */
interface Reached {
  readonly path: string
  readonly first: ReadonlyArray<number>
  readonly second: ReadonlyArray<number>
}

/** Searches for a path that `confirm` confirms. */
export const findPath = (
  wanted: Wanted,
  first: PathPattern,
  second: PathPattern,
  confirm: (path: string) => boolean,
): Found => {
  const unnamed = unnamedIn(first, second)
  const queue: Reached[] = [{ path: '', first: first.starts, second: second.starts }]
  const seen = new Set<string>()
  let isRefuted = false
  for (const reached of queue) {
    if (isWanted(wanted, accepts(first, reached.first), accepts(second, reached.second))) {
      if (confirm(reached.path)) return { path: reached.path }
      isRefuted = true
    }
    for (const char of charsAt(reached, first, second, unnamed)) {
      const next = {
        path: reached.path + char,
        first: move(first, reached.first, char),
        second: move(second, reached.second, char),
      }
      const pair = `${next.first.join()}|${next.second.join()}`
      const isDead = next.first.length === 0 || (wanted === 'of both' && next.second.length === 0)
      if (isDead || seen.has(pair)) continue
      if (seen.size > MAX_PAIRS) return 'unknown'
      seen.add(pair)
      queue.push(next)
    }
  }
  return isRefuted ? 'unknown' : 'none'
}

const isWanted = (wanted: Wanted, first: boolean, second: boolean): boolean =>
  first && (wanted === 'of both' ? second : !second)

// The characters that are named here, in both cases, and one for all others
const charsAt = (reached: Reached, first: PathPattern, second: PathPattern, unnamed: string): ReadonlySet<string> => {
  const named = [...namedAt(first, reached.first), ...namedAt(second, reached.second)]
  const cases = named.flatMap((char) => [char.toLowerCase(), char.toUpperCase()]).filter(({ length }) => length === 1)
  return new Set([unnamed, '/', ...named, ...cases])
}

const namedAt = ({ states }: PathPattern, indexes: ReadonlyArray<number>): ReadonlyArray<string> =>
  indexes.flatMap((index) => {
    const next = states[index]?.next
    return next?._tag === 'Text' ? [next.char] : []
  })

// A character that neither pattern names
const unnamedIn = (...patterns: ReadonlyArray<PathPattern>): string => {
  const named = new Set(
    patterns.flatMap(({ states }) => states.flatMap(({ next }) => (next?._tag === 'Text' ? [next.char] : []))),
  )
  const isNamed = (char: string): boolean => named.has(char) || named.has(char.toUpperCase())
  const plain = 'xyzabcdefghijklmnopqrstuvw0123456789'.split('').find((char) => !isNamed(char))
  return plain ?? privateUse.find((char) => !named.has(char))!
}

// A path of a router has fewer characters than these
const privateUse = Array.from({ length: 0x1900 }, (_, at) => String.fromCharCode(0xe000 + at))
