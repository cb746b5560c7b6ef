/**
 * Imports an ES module or a CommonJS module. This is a separate module, because a compiler to CommonJS writes `require`
 * for `import()` (`.ci/modules.mjs`).
 */

export const importModule = (url: string): Promise<object> => import(url) as Promise<object>
