/**
 * The list of operations that are public on purpose. `seal` and `expectGuarded` take the same list.
 *
 * An operation is listed by its name. The files that a docs page loads are listed with the page. `docs` lists the page,
 * its files and its document.
 */
import { isAssetAmong, partAmong } from './pageAsset.js'

/** The part of an operation that is read here. */
export interface Listable {
  /** `GET /health` */
  readonly name: string
  readonly functions: ReadonlyArray<Function>
}

const DOCS = 'docs'

const isOfDocs = ({ functions }: Listable): boolean => isAssetAmong(functions) || partAmong(functions) !== undefined

/** The name to list an operation by. For a file that a docs page loads, it is that of the page. */
export const listedName = ({ name, functions }: Listable): string =>
  isAssetAmong(functions) ? name.slice(0, name.lastIndexOf('/')) : name

/** Whether an entry of the list is about an operation. */
export const isEntryOf = (operation: Listable, entry: string): boolean =>
  entry === operation.name || entry === listedName(operation) || (entry === DOCS && isOfDocs(operation))

/** Why an entry is about no operation, and the fix; `undefined` if that is unknown. */
export const whyMissing = (entry: string, operations: ReadonlyArray<Listable>): string | undefined => {
  if (operations.some((operation) => isEntryOf(operation, entry))) return undefined
  if (entry === DOCS) return 'the router has no docs page: give apiApp the option docs, or mount docs(router, ...)'
  for (const { name, functions } of operations) {
    const { path = '', missingPage } = partAmong(functions) ?? {}
    if (missingPage !== undefined && entry === `${name.slice(0, -path.length)}${missingPage}`) {
      return 'the docs page needs swagger-ui-dist, which is not installed: npm install swagger-ui-dist'
    }
  }
  return undefined
}
