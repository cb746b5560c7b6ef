/**
 * A test runner for Stryker that keeps the modules loaded. Stryker's own runner starts Vitest for every mutant, which
 * takes two seconds. Here one worker of Vitest (worker.mjs) runs the tests of all mutants, one after the other.
 */
import { relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { declareClassPlugin, PluginKind } from '@stryker-mutator/api/plugin'
import { createVitest } from 'vitest/node'

const worker = fileURLToPath(new URL('./worker.mjs', import.meta.url))

// Cheap specs run first, and among them those of the mutated file: the first failure ends a mutant
const kinds = ['.unit.', '.law.', '.http.']
const cost = (mutated) => {
  const [, room = '', name = ''] = /src\/(\w+)\/(?:.*\/)?(\w+)\.ts$/.exec(mutated) ?? []
  return (spec) =>
    kinds.findIndex((kind) => spec.includes(kind)) * 4 -
    (room !== '' && spec.startsWith(`spec/${room}/`) ? 1 : 0) -
    (name !== '' && (spec.includes(`/${name}.`) || spec.includes(`/${name}-`)) ? 8 : 0)
}
const leastCostFirst = (specs, mutated) => {
  const costOf = cost(mutated)
  return [...specs].sort((a, b) => costOf(a) - costOf(b) || (a < b ? -1 : 1))
}

class WarmRunner {
  static inject = ['options']
  #options
  #vitest
  #run
  #channel = new BroadcastChannel('mutants')
  #specs = []

  constructor(options) {
    this.#options = options
  }

  capabilities() {
    return { reloadEnvironment: true }
  }

  async init() {
    process.env.NODE_ENV = 'test'
    const { configFile } = this.#options.vitest
    this.#vitest = await createVitest('test', {
      config: configFile,
      runner: worker,
      pool: 'threads',
      maxWorkers: 1,
      watch: false,
      reporters: [{}],
      onConsoleLog: () => false,
    })
    const found = await this.#vitest.globTestSpecifications((process.env.MUTATE_SPECS ?? '').split(' ').filter(Boolean))
    this.#specs = found.map(({ moduleId }) => relative(process.cwd(), moduleId))
    const ready = this.#answer()
    // This file is never run, because the worker waits for orders instead
    this.#run = this.#vitest.runTestSpecifications(found.slice(0, 1))
    this.#run.catch((error) => console.error(error))
    await ready
  }

  async dryRun() {
    return this.#order({ order: 'dry', specs: leastCostFirst(this.#specs, '') })
  }

  async mutantRun({ activeMutant, testFilter, hitLimit, reloadEnvironment, sandboxFileName }) {
    const byFile = new Map((testFilter ? [] : this.#specs).map((spec) => [spec, undefined]))
    for (const id of testFilter ?? []) {
      const [spec, test] = id.split('#')
      byFile.set(spec, [...(byFile.get(spec) ?? []), test])
    }
    const mutated = relative(process.cwd(), resolve(sandboxFileName))
    const runs = leastCostFirst([...byFile.keys()], mutated).map((spec) => [spec, byFile.get(spec)])
    return this.#order({ order: 'mutant', id: activeMutant.id, hitLimit, reload: reloadEnvironment, runs })
  }

  async dispose() {
    this.#channel.postMessage({ order: 'stop' })
    await this.#run
    await this.#vitest.close()
    this.#channel.close()
  }

  #order(order) {
    const answer = this.#answer()
    this.#channel.postMessage(order)
    return answer
  }

  #answer() {
    return new Promise((settle) => {
      this.#channel.onmessage = ({ data }) => settle(data)
    })
  }
}

export const strykerPlugins = [declareClassPlugin(PluginKind.TestRunner, 'warm', WarmRunner)]
