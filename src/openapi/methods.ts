/**
 * Divides a layer's methods into those that OpenAPI can list, and those that it has no field for.
 */

/** The methods that a Path Item Object has fields for (OpenAPI 3.1, Path Item Object), in its order. */
export const listed = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'] as const

/** A method that OpenAPI lists. */
export type ListedMethod = (typeof listed)[number]

/** The methods of a layer, divided. */
export interface Methods {
  readonly listed: ReadonlyArray<ListedMethod>
  /** Those that OpenAPI has no field for, as they are sent. */
  readonly others: ReadonlyArray<string>
}

/** Sorts the methods of a layer. The HEAD that the router adds to every GET is left out. */
export const methodsOf = (methods: ReadonlyArray<string>): Methods => {
  const times = (method: string): number => methods.filter((one) => one === method).length
  const own = new Set(times('HEAD') > times('GET') ? methods : methods.filter((one) => one !== 'HEAD'))
  // Safe: which of them it is does not matter to `includes`
  const others = [...own].filter((method) => !(listed as ReadonlyArray<string>).includes(method.toLowerCase()))
  return { listed: listed.filter((method) => own.has(method.toUpperCase())), others }
}
