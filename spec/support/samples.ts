/**
 * How many cases the longest laws try: all in continuous integration, a part of them elsewhere, so that `npm test` takes
 * minutes. A case that fails prints its seed, with which it can be run alone.
 */
export const isContinuousIntegration = process.env['CI'] !== undefined

/** So many cases in continuous integration, and a third of them elsewhere. */
export const samples = (all: number): number => (isContinuousIntegration ? all : Math.ceil(all / 3))
