/**
 * Where this package is on disk. This is a separate module, because CommonJS needs other code for it (`.ci/modules.mjs`).
 */

export const here: string = import.meta.url
