/**
 * The channels of `node:diagnostics_channel` on which this package tells what happens. Without a subscriber nothing is built.
 */
import { channel } from 'node:diagnostics_channel'

/** Each decision, when its answer is settled: a `Decision`. */
export const decisions = channel('koa-with-auth:decision')
