/**
 * How the operations that serve parts of a page are known: each is as open as the page, whose path its own path begins with.
 */
import { assetMark } from '../core/marks.js'

/** Marks a function of an operation that serves a part of the page one path segment above. */
export const markAsset = <F extends Function>(f: F): F => Object.assign(f, { [assetMark]: true })

/** Whether a function belongs to a part of a page. */
export const isAsset = (f: Function): boolean => assetMark in f
