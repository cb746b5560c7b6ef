/**
 * How many cases the longest laws try: a part of them in `npm test`, which takes minutes, all in `npm run test:all`, and few
 * in `npm run test:quick`. A case that fails prints its seed, with which it can be run alone.
 */
const cases = process.env['CASES']

/** Whether all cases are tried. */
export const hasAllCases = cases === 'all'

/** Whether so few are tried that not every outcome occurs. */
export const hasFewCases = cases === 'few'

/** Whether cases are drawn anew, for `npm run test:laws`: else those of each run are the same. */
export const hasDrawnCases = cases === 'drawn'

/** The number of cases: all in the slow tier, and a part of them, such as a third, in the first one. */
export const samples = (all: number, part = Math.ceil(all / 3)): number => {
  if (hasAllCases) return all
  return hasFewCases ? Math.ceil(part / 5) : part
}

/** The number of cases of a law that is not as long: all of them, and a fifth in `npm run test:quick`. */
export const runs = (all: number): number => (hasFewCases ? Math.ceil(all / 5) : all)

/** How often something must occur among these cases, so that the law says something about it. */
export const occurring = (times: number): number => (hasFewCases ? Math.floor(times / 20) : times)
