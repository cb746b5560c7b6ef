/**
 * Tests whether the time of `constantTimeEqual` reveals something about a secret: Welch's t-test after dudect (Reparaz,
 * Balasch and Verbauwhede, "Dude, is my code constant time?", 2017).
 *
 * Two classes of input are timed call by call, in a random order for each pair. Samples above the 90th percentile of
 * all samples are dropped: interrupts and garbage collections, which hide small differences. If |t| is at least 4.5,
 * the classes differ. `===` is also tested, which shows that the test can find a difference. One class is tested
 * against itself, which shows that the test finds none where there is none.
 */
import { constantTimeEqual } from '../../../dist/index.js'
import { row, type Row, type Section } from './Section.js'
import { exactly, medianOf } from './statistics.js'

type Equal = (a: string, b: string) => boolean

const LIMIT = 4.5
const CROP = 0.9
const LENGTH = 256
// Strings of each class, so that no branch predictor and no cache learns one
const POOL = 32

const strictly: Equal = (a, b) => a === b

// A string of its own bytes: V8 compares the same object by its address
const fresh = (text: string): string => Buffer.from(text, 'latin1').toString('latin1')

const letters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_'
const randomText = (length: number): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(length)), (byte) => letters[byte % 64]).join('')

const secret = randomText(LENGTH)
const wrongAt = (at: number): string => `${secret.slice(0, at)}!${secret.slice(at + 1)}`

/** The two classes of each question: a string of one class and of the other. The time may tell the length, as its docstring says. */
const questions: ReadonlyArray<readonly [name: string, a: () => string, b: () => string, mayDiffer?: true]> = [
  ['differs in the first character, or in the last', () => wrongAt(0), () => wrongAt(LENGTH - 1)],
  ['has the same length, or another', () => randomText(LENGTH), () => randomText(LENGTH / 8), true],
  ['is equal, or differs in the last character', () => secret, () => wrongAt(LENGTH - 1)],
]

const samplesOf = (equal: Equal, classes: readonly [() => string, () => string], count: number) => {
  const inputs = Array.from({ length: POOL }, () => classes.map((make) => ({ a: fresh(make()), b: fresh(secret) })))
  const times = [new Float64Array(count / 2), new Float64Array(count / 2)] as const
  const order = crypto.getRandomValues(new Uint8Array(32_768))
  let equals = 0
  for (let at = 0; at < count / 2; at++) {
    const byte = order[at % order.length] ?? 0
    if (at % order.length === order.length - 1) crypto.getRandomValues(order)
    const first = byte & 1
    const of = inputs[byte >> 3]
    for (const which of [first, 1 - first] as const) {
      const input = of?.[which]
      const into = times[which === 0 ? 0 : 1]
      if (input === undefined) throw new Error('no input')
      const { a, b } = input
      const begun = performance.now()
      const isEqual = equal(a, b)
      into[at] = (performance.now() - begun) * 1e6
      if (isEqual) equals++
    }
  }
  return { times, equals }
}

const moments = (values: Float64Array, crop: number) => {
  const kept = values.filter((value) => value <= crop)
  const mean = kept.reduce((sum, value) => sum + value, 0) / kept.length
  const variance = kept.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (kept.length - 1)
  return { mean, variance, count: kept.length }
}

/** Welch's t of two classes, cropped; and by how many nanoseconds their means differ. */
export const welch = (a: Float64Array, b: Float64Array): { readonly t: number; readonly ns: number } => {
  const all = new Float64Array(a.length + b.length)
  all.set(a)
  all.set(b, a.length)
  all.sort()
  const crop = all[Math.floor(all.length * CROP)] ?? Infinity
  const [one, other] = [moments(a, crop), moments(b, crop)]
  const ns = one.mean - other.mean
  return { t: Math.abs(ns) / Math.sqrt(one.variance / one.count + other.variance / other.count), ns }
}

const questionOf =
  (count: number) =>
  (
    name: string,
    equal: Equal,
    classes: readonly [() => string, () => string],
    wanted: Pick<Row, 'target' | 'atLeast'>,
  ): Row => {
    samplesOf(equal, classes, 20_000)
    const { t, ns } = welch(...samplesOf(equal, classes, count).times)
    return row(name, exactly(t), 't', { ...wanted, note: `${Math.abs(ns).toFixed(2)} ns apart` })
  }

const CALLS = 2000
const costOf = (length: number, rounds: number): Row => {
  const [a, b] = [fresh(secret.slice(0, length)), fresh(secret.slice(0, length))]
  const each = Array.from({ length: rounds }, () => {
    const begun = performance.now()
    for (let at = 0; at < CALLS; at++) if (!constantTimeEqual(a, b)) throw new Error('equal secrets differ')
    return ((performance.now() - begun) * 1000) / CALLS
  }).slice(Math.floor(rounds / 4))
  return row(`constantTimeEqual of ${length} characters`, medianOf(each), 'us', { target: 0.9 })
}

/** So many samples of each question. */
export const timing = (samples: number): Section => {
  const same = questions[0]?.[1] ?? (() => secret)
  const asked = questionOf(samples)
  return {
    title: 'What the time of a comparison shows',
    rows: [
      ...questions.map(([name, a, b, mayDiffer]) =>
        asked(`constantTimeEqual: ${name}`, constantTimeEqual, [a, b], mayDiffer === true ? {} : { target: LIMIT }),
      ),
      asked('control: constantTimeEqual, one class beside itself', constantTimeEqual, [same, same], { target: LIMIT }),
      ...questions.map(([name, a, b]) => asked(`control: ===: ${name}`, strictly, [a, b], { atLeast: LIMIT })),
      costOf(16, 200),
      costOf(LENGTH, 200),
    ],
  }
}
