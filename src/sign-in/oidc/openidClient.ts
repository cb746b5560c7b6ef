/**
 * `openid-client` has only ES modules. It is loaded in this separate module, because CommonJS needs other code for it
 * (`.ci/modules.mjs`).
 */
import * as module from 'openid-client'

export const openidClient = (): typeof module => module
