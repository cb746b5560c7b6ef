/**
 * Histories of a store: calls that overlap, and their results. A history is right if the calls could have happened one after another, each
 * between its beginning and its end.
 */

/** A call of a store about one key or set, with texts that last. */
export type StoreCall =
  | { readonly name: 'get' | 'end'; readonly key: string }
  | { readonly name: 'insert'; readonly key: string; readonly text: string }
  | { readonly name: 'update'; readonly key: string; readonly text: string; readonly was?: string }
  | { readonly name: 'add'; readonly key: string; readonly member: string }
  | { readonly name: 'members'; readonly key: string }

/** A call that has ended. Moments are counted. */
export interface Called {
  readonly call: StoreCall
  /** `undefined` of a call without a result. */
  readonly result: unknown
  readonly begun: number
  readonly ended: number
}

/** The content of a store: texts, `null` for keys that were ended, and sets as sorted members. */
interface Model {
  readonly texts: Readonly<Record<string, string | null>>
  readonly sets: Readonly<Record<string, ReadonlyArray<string>>>
}

const withText = (model: Model, key: string, text: string | null): Model => ({
  ...model,
  texts: { ...model.texts, [key]: text },
})

const apply = (model: Model, call: StoreCall): readonly [Model, unknown] => {
  const kept = model.texts[call.key]
  switch (call.name) {
    case 'get':
      return [model, kept ?? undefined]
    case 'end':
      return [withText(model, call.key, null), undefined]
    case 'insert':
      return kept === undefined ? [withText(model, call.key, call.text), true] : [model, false]
    case 'update':
      return typeof kept === 'string' && (call.was === undefined || call.was === kept)
        ? [withText(model, call.key, call.text), true]
        : [model, false]
    case 'add': {
      const members = new Set([...(model.sets[call.key] ?? []), call.member])
      return [{ ...model, sets: { ...model.sets, [call.key]: [...members].sort() } }, undefined]
    }
    case 'members':
      return [model, model.sets[call.key] ?? []]
  }
}

/** Whether there is an order of the calls in which each result is right. */
const isLinear = (history: ReadonlyArray<Called>, model: Model = { texts: {}, sets: {} }): boolean => {
  if (history.length === 0) return true
  const firstEnd = Math.min(...history.map(({ ended }) => ended))
  return history.some((one) => {
    // a call that began after the end of another call comes after it
    if (one.begun > firstEnd) return false
    const [next, result] = apply(model, one.call)
    if (JSON.stringify(one.result) !== JSON.stringify(result)) return false
    const others = history.filter((other) => other !== one)
    return isLinear(others, next)
  })
}

/** A history that is wrong, in words, in the order of its beginnings; `undefined` if it is right. */
export const wrongHistory = (history: ReadonlyArray<Called>): string | undefined =>
  isLinear(history)
    ? undefined
    : history
        .toSorted((one, other) => one.begun - other.begun)
        .map(({ call, result, begun, ended }) => {
          const { name, ...about } = call
          return `${begun} to ${ended}: ${name} ${JSON.stringify(about)} -> ${JSON.stringify(result)}`
        })
        .join('\n')
