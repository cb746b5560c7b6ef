/**
 * The marks that this package puts on values, all in one place. Each is a `Symbol.for`, so that two copies of the
 * package in one process (at two paths, of two versions) recognize each other's, and so that a debugger shows them.
 */

/** On a function: it is a guard, see `koa/guardMark.ts`. */
export const guardMark = Symbol.for('koa-with-auth/guard')

/**
 * The `param` of functions that stay before `param` hooks. The router sorts hooks among the functions of a layer by
 * their `param`, and puts them before the first that has none. No path has a parameter of this name (D-R10).
 */
export const aheadOfParams = Symbol.for('koa-with-auth/ahead-of-params')

/** On a router: the level that made it, see `koa/levels.ts`. */
export const levelMark = Symbol.for('koa-with-auth/level')

/** On a layer: its functions as they were written, see `koa/layer.ts`. */
export const layerMark = Symbol.for('koa-with-auth/layer')

/** On a router: its application, see `koa/application.ts`. */
export const applicationMark = Symbol.for('koa-with-auth/application')

/** On the `opts` of a layer: the identities of its applications, outermost first. */
export const applicationsMark = Symbol.for('koa-with-auth/applications')

/** On a function: it sets the settings of an application in a layer, or takes them back. */
export const applicationSettingsMark = Symbol.for('koa-with-auth/application-settings')

/** On a Koa context: the captures of the layer whose guard ran last, see `koa/placement.ts`. */
export const guardedMark = Symbol.for('koa-with-auth/guarded')

/** On a function: it describes its operation, see `openapi/operation.ts`. */
export const operationMark = Symbol.for('koa-with-auth/operation')

/** On a function: which docs page its operation belongs to, see `openapi/docsRoutes.ts`. */
export const docsMark = Symbol.for('koa-with-auth/docs')

/** On a function: it serves a part of the page one path segment above. */
export const assetMark = Symbol.for('koa-with-auth/asset')

/** On middleware: it carries settings, see `koa/authSettings.ts`. */
export const settingsMark = Symbol.for('koa-with-auth/settings')

/** On middleware: the function that an upgrade runs instead, see `upgrades/guardUpgrade.ts`. */
export const upgradeMark = Symbol.for('koa-with-auth/upgrade')

/** On a router and its layers: they are sealed, see `audit/sealing.ts`. */
export const sealedMark = Symbol.for('koa-with-auth/sealed')

/** On a router: `expectGuarded` is running on it. */
export const tripwiresMark = Symbol.for('koa-with-auth/tripwires')

/** On a response: the headers of the guarded operation that answers, see `koa/responseHeaders.ts`. */
export const policyMark = Symbol.for('koa-with-auth/header-policy')

/** On a response: what was decided about its request, see `koa/watching.ts`. */
export const decisionMark = Symbol.for('koa-with-auth/decision')

/**
 * On a router: what was printed about it. On the channel of decisions: that they are printed. See `koa/debugging.ts`.
 */
export const printedMark = Symbol.for('koa-with-auth/printed')

/** On a Koa request: the kinds that let in, if there is a subscriber, see `core/events/witnessed.ts`. */
export const passedMark = Symbol.for('koa-with-auth/passed')

/** On a Koa request: a remembered verification answered, see `core/events/witnessed.ts`. */
export const recalledMark = Symbol.for('koa-with-auth/recalled')

/** On a Koa request: credentials that were decoded before their kind was asked, see `core/Reading.ts`. */
export const decodedMark: unique symbol = Symbol.for('koa-with-auth/decoded')

/** On a Koa request: something else than its credential decided, see `core/Reading.ts`. */
export const recoveredMark: unique symbol = Symbol.for('koa-with-auth/recovered')

/** On a Koa request: the guesses that it made, see `core/heldGuesses.ts`. */
export const guessedMark: unique symbol = Symbol.for('koa-with-auth/guessed')

/** On a request of node:http: the sign-outs since its upgrade began, see `upgrades/signOuts.ts`. */
export const hearingMark: unique symbol = Symbol.for('koa-with-auth/hearing')

/** On an application: which weaknesses of its sessions were warned of, see `core/session/requestSession.ts`. */
export const warnedMark: unique symbol = Symbol.for('koa-with-auth/warned')

/** On a router: the copies that `withAuth` made of it, see `koa/unmounted.ts`. */
export const copiesMark = Symbol.for('koa-with-auth/copies')

/** On a router: its `routes()` was called. */
export const usedMark = Symbol.for('koa-with-auth/is-used')

/** On a hook: its author was warned that it reads no credential, see `core/credentialHook.ts`. */
export const unreadMark = Symbol.for('koa-with-auth/unread-credential')

/** On a Right: no credential was sent for it, see `core/Evaluation.ts`. */
export const anonymousMark = Symbol.for('koa-with-auth/anonymous')
