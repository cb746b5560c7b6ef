/**
 * `jose`, which has ES modules alone. A module of its own, because CommonJS says it in other words (`.ci/modules.mjs`).
 */
import * as module from 'jose'

/** What jose exports. */
export const jose = (): typeof module => module
