/**
 * `jose` has only ES modules. It is loaded in this separate module, because CommonJS needs other code for it (`.ci/modules.mjs`).
 */
import * as module from 'jose'

/** The exports of jose. */
export const jose = (): typeof module => module
