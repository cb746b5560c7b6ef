/**
 * The options of koa-session that are always the same.
 */

/** koa-session and its cookies read these whether they are given or not, from a polluted prototype, too (D-S12). */
export const unpolluted = {
  externalKey: undefined,
  ContextStore: undefined,
  valid: undefined,
  beforeSave: undefined,
  prefix: undefined,
  rolling: false,
  renew: false,
  path: '/',
  domain: undefined,
  overwrite: true,
}
