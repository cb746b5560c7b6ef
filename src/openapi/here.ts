/**
 * Where this package is on disk. A module of its own, because CommonJS says it in other words (`.ci/modules.mjs`).
 */

/** The URL of this module. */
export const here: string = import.meta.url
