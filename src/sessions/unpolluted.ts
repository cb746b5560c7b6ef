/**
 * The options of koa-session that no application changes.
 */

/** koa-session and its cookies read these even if they are not given: then from a polluted prototype (D-S12). */
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
