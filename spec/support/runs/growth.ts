/** How the time of a function grows with its input, for what no count of steps shows. */

const timeOf = (run: () => unknown): number => {
  const begun = performance.now()
  run()
  return performance.now() - begun
}

// It is 8 if the time is in proportion to the input, and 64 if it grows with the square
const LIMIT = 24
const ROUNDS = 300

/**
 * Compares an input of `size` with one of eight times the size. A busy machine only makes a round longer, so the shortest
 * of each come closer to the truth with every round, and it repeats until they decide. Throws if they never do.
 */
export const expectLinear = (size: number, prepare: (size: number) => () => unknown): void => {
  const [small, large] = [prepare(size), prepare(8 * size)]
  let [shortest, longest] = [Infinity, Infinity]
  for (let round = 0; round < ROUNDS; round++) {
    shortest = Math.min(shortest, timeOf(small))
    longest = Math.min(longest, timeOf(large))
    if (round >= 3 && longest < LIMIT * shortest) return
  }
  throw new Error(`eight times the input took ${(longest / shortest).toFixed(1)} times as long`)
}
