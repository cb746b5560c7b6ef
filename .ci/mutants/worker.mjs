/**
 * The part of the test runner for mutants that is in a worker of Vitest; plugin.mjs is the other part. It runs spec
 * files in this process, one mutant after the other. Spec files are imported again for each run. The modules of src
 * stay loaded, unless a mutant matters while they load.
 */
import { relative, resolve } from 'node:path'
import { performance } from 'node:perf_hooks'
import { startTests } from '@vitest/runner'
import { TestRunner, vi } from 'vitest'

// A mutant that matters while modules load can concern every spec. The most probable specs run first. After this many
// milliseconds it has survived.
const patience = Number(process.env.MUTATE_PATIENCE ?? 8) * 1000
const state = () => globalThis.__vitest_worker__
// The mutated sources look here: https://github.com/stryker-mutator/stryker-js, packages/instrumenter
const mutants = (globalThis.__stryker__ ??= {})
const nameOf = (test) => (test.suite ? `${nameOf(test.suite)} ${test.name}` : test.name)
const testsOf = (task) => (task.type === 'test' ? [task] : task.tasks.flatMap(testsOf))
const failed = ({ result }) => result?.state === 'fail'

/** Runs one file, and stops with the first failure if `bail`. It reports nothing to Vitest. */
class OneFile extends TestRunner {
  constructor(outer, spec, bail) {
    super({ ...outer.config, setupFiles: [] })
    this.moduleRunner = outer.moduleRunner
    this.__setTraces(outer._otel)
    this.spec = spec
    this.bail = bail
  }
  onCleanupWorkerContext() {}
  async onBeforeRunTask(test) {
    await super.onBeforeRunTask(test)
    mutants.currentTestId = `${this.spec}#${test.id}`
  }
  onAfterRunTask(test) {
    super.onAfterRunTask(test)
    mutants.currentTestId = `${this.spec}#`
    if (this.bail && failed(test)) this.cancel()
  }
}

const forget = (pattern) => {
  for (const [id, module] of state().evaluatedModules.idToModuleMap) {
    if (!pattern.test(id) || id.includes('node_modules') || id.includes('/.ci/')) continue
    Object.assign(module, { promise: undefined, exports: undefined, evaluated: false })
    module.importers.clear()
  }
}

export default class Orders extends TestRunner {
  /** Is called before the first file would load. Ends when the plugin says so. */
  async onBeforeCollect() {
    const channel = new BroadcastChannel('mutants')
    const orders = []
    let wake = () => {}
    channel.onmessage = ({ data }) => {
      orders.push(data)
      wake()
    }
    for (const setup of this.config.setupFiles) await this.importFile(setup, 'setup')
    channel.postMessage('ready')
    for (;;) {
      while (orders.length === 0) await new Promise((settle) => (wake = settle))
      const order = orders.shift()
      if (order.order === 'stop') break
      try {
        channel.postMessage(await (order.order === 'dry' ? this.dry(order) : this.mutant(order)))
      } catch (error) {
        channel.postMessage({ status: 'error', errorMessage: String(error?.stack ?? error) })
      }
    }
    channel.close()
    throw new Error('no more mutants')
  }

  async file(spec, testIds, bail) {
    const filepath = resolve(this.config.root, spec)
    forget(/\/spec\//)
    // As spec/support/runs/sharedProcess.ts does before each file
    for (const key of Object.getOwnPropertySymbols(globalThis))
      if (Symbol.keyFor(key)?.startsWith('koa-with-auth/')) Reflect.deleteProperty(globalThis, key)
    state().filepath = filepath
    const [file] = await startTests([testIds ? { filepath, testIds } : filepath], new OneFile(this, spec, bail))
    vi.resetConfig()
    vi.restoreAllMocks()
    vi.useRealTimers()
    return file
  }

  /**
   * Runs all tests, and notes which mutants each of them reaches. Mutants that a file reaches outside of its tests
   * count for each of its tests.
   */
  async dry({ specs }) {
    // First without a name, so that what runs at loading belongs to no test
    mutants.currentTestId = undefined
    for (const source of Object.keys(import.meta.glob('/src/**/*.ts'))) {
      if (!source.startsWith('/src/command/')) await this.moduleRunner.import(resolve(this.config.root, `.${source}`))
    }
    const tests = []
    const perTest = {}
    for (const spec of specs) {
      mutants.currentTestId = `${spec}#`
      const file = await this.file(spec, undefined, false)
      if (failed(file) && testsOf(file).every((test) => !failed(test)))
        return { status: 'error', errorMessage: `${spec}: ${file.result.errors?.[0]?.stack}` }
      const late = testsOf(file).filter(failed)
      // On a busy machine a test that measures time can fail, so it gets two more chances
      for (const test of late) {
        for (let chance = 0; chance < 2 && failed(test); chance++) {
          mutants.currentTestId = `${spec}#`
          const again = testsOf(await this.file(spec, [test.id], false)).find(({ id }) => id === test.id)
          if (again?.result?.state === 'pass') test.result = again.result
        }
      }
      for (const test of testsOf(file)) {
        const id = `${spec}#${test.id}`
        const common = { id, name: nameOf(test), timeSpentMs: test.result?.duration ?? 0, fileName: resolve(spec) }
        if (failed(test))
          tests.push({ ...common, status: 1, failureMessage: test.result.errors?.[0]?.stack ?? 'unknown' })
        else tests.push({ ...common, status: test.result?.state === 'pass' ? 0 : 2 })
      }
    }
    mutants.currentTestId = undefined
    const coverage = mutants.mutantCoverage ?? { static: {}, perTest: {} }
    for (const { id, fileName } of tests) {
      const met = { ...coverage.perTest[`${relative(process.cwd(), fileName)}#`] }
      for (const [mutant, hits] of Object.entries(coverage.perTest[id] ?? {})) met[mutant] = (met[mutant] ?? 0) + hits
      perTest[id] = met
    }
    return { status: 'complete', tests, mutantCoverage: { static: coverage.static, perTest } }
  }

  /**
   * A failure counts only if the same test passes again without the mutant, so state that a mutant leaves behind is not
   * blamed on another.
   */
  async mutant({ id, hitLimit, reload, runs }, again = true) {
    const wear = (mutant) => {
      if (reload || this.stale) forget(/\/(src|spec)\//)
      this.stale = reload
      Object.assign(mutants, {
        activeMutant: mutant,
        hitCount: mutant && hitLimit ? 0 : undefined,
        hitLimit: mutant && hitLimit,
      })
    }
    let nrOfTests = 0
    const start = performance.now()
    wear(id)
    try {
      for (const [spec, testIds] of runs) {
        if (reload && performance.now() - start > patience) break
        const file = await this.file(spec, testIds, true)
        if (mutants.hitCount > hitLimit) return { status: 'timeout', reason: 'hit limit' }
        nrOfTests += testsOf(file).filter(({ result }) => result?.state === 'pass' || result?.state === 'fail').length
        if (!failed(file)) continue
        const first = testsOf(file).find(failed)
        const failureMessage = (first ?? file).result.errors?.[0]?.message ?? 'unknown'
        const killed = {
          status: 'killed',
          killedBy: first ? [`${spec}#${first.id}`] : [`${spec}#`],
          failureMessage,
          nrOfTests,
        }
        wear(undefined)
        if (first && !failed(await this.file(spec, [first.id], true))) return killed
        if (!failed(await this.file(spec, testIds, true))) return killed
        forget(/\/(src|spec)\//)
        if (failed(await this.file(spec, testIds, true)))
          return { status: 'error', errorMessage: `${spec} fails without the mutant, too: ${failureMessage}` }
        return again ? await this.mutant({ id, hitLimit, reload, runs }, false) : killed
      }
      return { status: 'survived', nrOfTests }
    } finally {
      wear(undefined)
    }
  }
}
