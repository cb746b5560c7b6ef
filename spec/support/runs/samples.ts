/**
 * How many cases the longest laws try: a part of them in `npm test`, which takes minutes, and all in `npm run test:all`,
 * which sets `CASES`. A case that fails prints its seed, with which it can be run alone.
 */
/** Whether all cases are tried. */
export const hasAllCases = process.env['CASES'] === 'all'

/** The number of cases: all in the slow tier, and a part of them, such as a third, elsewhere. */
export const samples = (all: number, part = Math.ceil(all / 3)): number => (hasAllCases ? all : part)
