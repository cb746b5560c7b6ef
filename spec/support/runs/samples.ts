/**
 * How many cases the longest laws try: all of them in continuous integration, and fewer elsewhere, so that `npm test`
 * takes minutes. A case that fails prints its seed, with which it can be run alone.
 */
export const isContinuousIntegration = process.env['CI'] !== undefined

/** The number of cases: all in continuous integration, and a third elsewhere. */
export const samples = (all: number): number => (isContinuousIntegration ? all : Math.ceil(all / 3))
