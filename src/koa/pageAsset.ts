/**
 * Marks the operations of a docs page. The page and its document are marked with the part that they serve. The files
 * that the page loads have a mark of another kind. They are as open as the page, and their paths begin with its path.
 */
import { assetMark, docsMark } from '../core/marks.js'

/** A part of a docs page: the page itself, or its document. Parts are compared by identity. */
export interface Part {
  readonly path: string
  /** The path that the page would have. Set if the page is missing, because `swagger-ui-dist` is not installed. */
  readonly missingPage?: string
}

/** Marks a function of the operation that serves a part. */
export const markPart =
  (part: Part) =>
  <F extends Function>(f: F): F =>
    Object.assign(f, { [docsMark]: part })

/** The part that an operation serves; `undefined` if it serves none. */
export const partAmong = (functions: ReadonlyArray<Function>): Part | undefined => {
  const marked = functions.find((f) => docsMark in f)
  // Safe: only `markPart` writes it
  return marked && (Reflect.get(marked, docsMark) as Part)
}

/** Marks a function of an operation that serves a file of the page one path segment above. */
export const markAsset = <F extends Function>(f: F): F => Object.assign(f, { [assetMark]: true })

/** Whether an operation serves a file that a page loads. */
export const isAssetAmong = (functions: ReadonlyArray<Function>): boolean => functions.some((f) => assetMark in f)
