/**
 * Imports a module of either system. This is a separate module, because a compiler to CommonJS writes `require` for `import()`
 * (`.ci/modules.mjs`).
 */

/** All that the module at this URL exports. */
export const importModule = (url: string): Promise<object> => import(url) as Promise<object>
