/**
 * Imports an ES module or a CommonJS module. This is a separate module, because a compiler to CommonJS writes `require`
 * for `import()` (`.ci/modules.mjs`).
 */

/** The exports of the module at this URL. */
export const importModule = (url: string): Promise<object> => import(url) as Promise<object>
