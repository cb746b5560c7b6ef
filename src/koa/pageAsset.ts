/**
 * How the operations of a docs page are known: the page and its document by the part that they serve, and what the page loads,
 * each of which is as open as the page, whose path its own path begins with.
 */
import { assetMark, docsMark } from '../core/marks.js'

/** A part of a docs page: the page itself, or its document. What is compared is which object it is. */
export interface Part {
  readonly path: string
  /** The path of the page that is not there, because `swagger-ui-dist` is not installed. */
  readonly missingPage?: string
}

/** Marks a function of the operation that serves a part. */
export const markPart =
  (part: Part) =>
  <F extends Function>(f: F): F =>
    Object.assign(f, { [docsMark]: part })

/** The part that an operation serves; `undefined` where it serves none. */
export const partAmong = (functions: ReadonlyArray<Function>): Part | undefined => {
  const marked = functions.find((f) => docsMark in f)
  // Safe: `markPart` alone writes it
  return marked && (Reflect.get(marked, docsMark) as Part)
}

/** Marks a function of an operation that serves a part of the page one path segment above. */
export const markAsset = <F extends Function>(f: F): F => Object.assign(f, { [assetMark]: true })

/** Whether an operation serves what a page loads. */
export const isAssetAmong = (functions: ReadonlyArray<Function>): boolean => functions.some((f) => assetMark in f)
