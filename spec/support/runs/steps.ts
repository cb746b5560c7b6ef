/**
 * Counts what a program does, instead of how long it takes: each call of a function of the language that walks a string, an array
 * or another collection counts for what it walks. So the count of a run is always the same.
 *
 * It does not see loops that call nothing, and takes a regular expression for one walk: `spec/requests/steps.law.spec.ts` asks
 * another witness about these.
 */

type Method = (this: unknown, ...args: unknown[]) => unknown

const { getPrototypeOf, defineProperty, getOwnPropertyDescriptor, keys } = Object
const { apply, ownKeys } = Reflect
const isView = ArrayBuffer.isView.bind(ArrayBuffer)

const sizeOf = (u: unknown): number => {
  if (typeof u === 'string') return u.length
  if (typeof u !== 'object' || u === null) return 1
  if (u instanceof Map || u instanceof Set || u instanceof URLSearchParams) return u.size
  return isView(u) ? u.byteLength : Array.isArray(u) ? u.length : keys(u).length
}

// These do the same work however long the receiver is
const constant: ReadonlySet<PropertyKey> = new Set<PropertyKey>([
  ...['at', 'charAt', 'charCodeAt', 'codePointAt', 'push', 'pop', 'next', 'startsWith', 'endsWith', 'slice', 'valueOf'],
  ...['set', 'values', 'entries', 'keys', Symbol.iterator, 'toString'],
])
const hashed: ReadonlySet<PropertyKey> = new Set(['get', 'has', 'add', 'delete'])

// UAX #15: combining marks in a row are sorted by insertion
const sortingOf = (text: string): number => {
  let steps = 0
  let run = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    run = code >= 0x300 && code < 0x370 ? run + 1 : 0
    steps += run
  }
  return steps
}

// A global expression goes on where its last match ended, as `replace` does for each match
const lastIndexOf = (self: unknown): number => (self instanceof RegExp && self.global ? self.lastIndex : 0)

const costOf = (
  self: unknown,
  name: PropertyKey,
  args: ReadonlyArray<unknown>,
  result: unknown,
  from: number,
): number => {
  if (name === 'indexOf') {
    // it looks from a place on, as far as it finds something
    const start = typeof args[1] === 'number' ? args[1] : 0
    const end = result === -1 ? sizeOf(self) : Number(result)
    return 1 + sizeOf(args[0]) + Math.max(0, end - start)
  }
  // `split` tries an expression at each place
  if (name === 'exec' && self instanceof RegExp && self.sticky)
    return 1 + (Array.isArray(result) ? sizeOf(result[0]) : 0)
  if (name === 'exec') return 1 + (lastIndexOf(self) || sizeOf(args[0])) - from
  if (name === 'normalize') return sortingOf(String(self))
  if (name === 'slice' || name === 'toString' || name === 'substr' || name === 'substring') return sizeOf(result)
  if (constant.has(name)) return 1 + (typeof args[0] === 'string' ? args[0].length : 0)
  if (hashed.has(name) && (self instanceof Map || self instanceof Set)) return 1
  return 1 + sizeOf(self) + args.reduce<number>((sum, one) => sum + sizeOf(one), 0)
}

const iteratorOf = (iterable: Iterable<unknown>): object => getPrototypeOf(iterable[Symbol.iterator]()) as object

const watched: ReadonlyArray<object> = [
  ...[String.prototype, Array.prototype, RegExp.prototype, Map.prototype, Set.prototype, URLSearchParams.prototype],
  ...[Buffer.prototype, Buffer, JSON, Object],
  ...[iteratorOf([]), iteratorOf(''), iteratorOf(new Map()), iteratorOf(new Set()), iteratorOf(new URLSearchParams())],
]

/** How many steps a function takes; what it throws is thrown. It must not be used twice at the same time. */
export const stepsOf = async (f: () => unknown): Promise<number> => {
  let steps = 0
  let isCounting = false
  const undo: Array<() => unknown> = []
  for (const owner of watched) {
    for (const name of ownKeys(owner)) {
      const own = getOwnPropertyDescriptor(owner, name)
      const method: unknown = own?.value
      if (own === undefined || typeof method !== 'function' || name === 'constructor' || own.configurable !== true)
        continue
      const value: Method = function (...args) {
        const from = lastIndexOf(this)
        const result: unknown = apply(method, this, args)
        if (!isCounting) return result
        isCounting = false
        steps += costOf(this, name, args, result, from)
        isCounting = true
        return result
      }
      defineProperty(owner, name, { ...own, value: Object.assign(value, method) })
      undo.unshift(() => defineProperty(owner, name, own))
    }
  }
  // One walk, like a regular expression: Node 26 reads with methods that are watched, other Nodes do not
  const original = globalThis.URLSearchParams
  globalThis.URLSearchParams = new Proxy(original, {
    construct: (target, args: ConstructorParameters<typeof original>, maker) => {
      const before = isCounting
      isCounting = false
      // Safe: it makes what the class makes
      const made = Reflect.construct(target, args, maker) as URLSearchParams
      if (before) steps += 1 + sizeOf(args[0])
      isCounting = before
      return made
    },
  })
  undo.push(() => (globalThis.URLSearchParams = original))
  isCounting = true
  try {
    await f()
  } finally {
    isCounting = false
    for (const one of undo) one()
  }
  return steps
}
