/**
 * Walks two patterns together, to find a path that both accept, or one that only the first does.
 *
 * Characters that neither names lead everywhere to the same places, so one stands for all. What is found is a shortest
 * path, confirmed by the RegExps that the router itself uses; that there is none is a proof.
 */
import { accepts, after, type PathPattern } from './PathPattern.js'

/** What a search came to. */
export type Found = { readonly path: string } | 'none' | 'unknown'

/** Which paths are looked for. */
export type Wanted = 'of both' | 'of the first alone'

// Places that were reached together; patterns of a hundred routers do not come near it
const MAX_PLACES = 5000

interface Reached {
  readonly path: string
  readonly first: ReadonlyArray<number>
  readonly second: ReadonlyArray<number>
}

/** Looks for a path that `confirm` confirms. */
export const findPath = (
  wanted: Wanted,
  first: PathPattern,
  second: PathPattern,
  confirm: (path: string) => boolean,
): Found => {
  const stranger = strangerTo(first, second)
  const queue: Reached[] = [{ path: '', first: first.starts, second: second.starts }]
  const seen = new Set<string>()
  let isRefuted = false
  for (const reached of queue) {
    if (isWanted(wanted, accepts(first, reached.first), accepts(second, reached.second))) {
      if (confirm(reached.path)) return { path: reached.path }
      isRefuted = true
    }
    for (const char of charsAt(reached, first, second, stranger)) {
      const next = {
        path: reached.path + char,
        first: after(first, reached.first, char),
        second: after(second, reached.second, char),
      }
      const places = `${next.first.join()}|${next.second.join()}`
      const isDead = next.first.length === 0 || (wanted === 'of both' && next.second.length === 0)
      if (isDead || seen.has(places)) continue
      if (seen.size > MAX_PLACES) return 'unknown'
      seen.add(places)
      queue.push(next)
    }
  }
  return isRefuted ? 'unknown' : 'none'
}

const isWanted = (wanted: Wanted, first: boolean, second: boolean): boolean =>
  first && (wanted === 'of both' ? second : !second)

// What is named here, in both cases, and one for all others
const charsAt = (reached: Reached, first: PathPattern, second: PathPattern, stranger: string): ReadonlySet<string> => {
  const named = [...namedAt(first, reached.first), ...namedAt(second, reached.second)]
  const cases = named.flatMap((char) => [char.toLowerCase(), char.toUpperCase()]).filter(({ length }) => length === 1)
  return new Set([stranger, '/', ...named, ...cases])
}

const namedAt = ({ states }: PathPattern, places: ReadonlyArray<number>): ReadonlyArray<string> =>
  places.flatMap((place) => {
    const next = states[place]?.next
    return next?._tag === 'Text' ? [next.char] : []
  })

// A character that neither pattern names
const strangerTo = (...patterns: ReadonlyArray<PathPattern>): string => {
  const named = new Set(
    patterns.flatMap(({ states }) => states.flatMap(({ next }) => (next?._tag === 'Text' ? [next.char] : []))),
  )
  const isNamed = (char: string): boolean => named.has(char) || named.has(char.toUpperCase())
  const plain = 'xyzabcdefghijklmnopqrstuvw0123456789'.split('').find((char) => !isNamed(char))
  return plain ?? privateUse.find((char) => !named.has(char))!
}

// A path of a router has fewer characters than these
const privateUse = Array.from({ length: 0x1900 }, (_, at) => String.fromCharCode(0xe000 + at))
