/**
 * Isolates a loaded module: it cannot listen to a port, open a connection or ask a name server, and its output is not a
 * part of the result.
 *
 * Unlike the rest of the package, it changes functions of Node. So only the command uses it, in a separate process.
 */
import dgram from 'node:dgram'
import dns from 'node:dns'
import { Module, syncBuiltinESMExports } from 'node:module'
import net from 'node:net'

/** What a module has tried so far. */
interface Attempts {
  /** Whether it wanted to use the network. */
  network: boolean
}

/** Cuts the process off. `listened` is called when the module wants to listen, and does not return. */
export const isolate = (listened: () => never): Attempts => {
  const attempts: Attempts = { network: false }
  const refusal = (): Error => {
    attempts.network = true
    return Object.assign(new Error('koa-with-auth audit uses no network'), { code: 'ECONNREFUSED' })
  }
  const refuse = (): never => {
    throw refusal()
  }

  Object.assign(net.Server.prototype, { listen: listened })
  const connect = net.Socket.prototype.connect
  const connectNowhere = function (this: net.Socket, ...given: ReadonlyArray<unknown>): net.Socket {
    // Safe: the same arguments
    if (isLocal(given)) return Reflect.apply(connect, this, given as Parameters<typeof connect>)
    return this.destroy(refusal())
  }
  Object.assign(net.Socket.prototype, { connect: connectNowhere })
  Object.assign(dgram.Socket.prototype, { bind: refuse, connect: refuse, send: refuse })

  const isLookUp = (name: string): boolean => /^(?:lookup|resolve|reverse)/.test(name)
  const failLate = (...given: ReadonlyArray<unknown>): void => {
    const callback = given.at(-1)
    if (typeof callback === 'function') process.nextTick(callback, refusal())
  }
  const reject = (): Promise<never> => Promise.reject(refusal())
  for (const [target, replacement] of [
    [dns, failLate],
    [dns.Resolver.prototype, failLate],
    [dns.promises, reject],
    [dns.promises.Resolver.prototype, reject],
  ] as const) {
    for (const name of namesOf(target).filter(isLookUp)) Reflect.set(target, name, replacement)
  }
  loadAsPart()
  syncBuiltinESMExports()
  return attempts
}

// Old programs listen `if (!module.parent)`. The command is the parent of what it imports.
const loadAsPart = (): void => {
  const load: unknown = Reflect.get(Module.prototype, 'load')
  if (typeof load !== 'function') return
  const loadBelow = function (this: { parent?: unknown }, ...given: ReadonlyArray<unknown>): unknown {
    this.parent ??= process.mainModule
    return Reflect.apply(load, this, given)
  }
  Reflect.set(Module.prototype, 'load', loadBelow)
}

// A Resolver also has the methods of the class that it extends
const namesOf = (target: object): string[] => {
  const names = Object.getOwnPropertyNames(target)
  const above: unknown = Object.getPrototypeOf(target)
  return typeof above === 'object' && above !== null && above !== Object.prototype
    ? [...names, ...namesOf(above)]
    : names
}

// A pipe or a socket in the file system, as compilers of TypeScript use them
const isLocal = (given: ReadonlyArray<unknown>): boolean => {
  const [first]: ReadonlyArray<unknown> = Array.isArray(given[0]) ? given[0] : given
  if (typeof first === 'string') return !/^\d+$/.test(first)
  return typeof first === 'object' && first !== null && 'path' in first && typeof first.path === 'string'
}
