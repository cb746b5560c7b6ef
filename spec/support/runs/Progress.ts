/**
 * What a person sees of a run: one line that grows with the files done and the time left, each failure when it happens,
 * and at the end the sum, what was skipped and why, and what took longest. Without a terminal: plain text, and the line
 * once a minute.
 */
import { statSync, writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import {
  experimental_getRunnerTask,
  type Reporter,
  type SerializedError,
  type TestCase,
  type TestModule,
  type TestRunEndReason,
  type TestSpecification,
  type TestSuite,
  type Vitest,
} from 'vitest/node'

// What a failed test printed is shown up to this length
const LOGS = 2000

/** What a file of a run took. */
interface Figures {
  readonly name: string
  readonly seconds: number
  /** Of its worker, and of the processes that it started and that have ended. */
  readonly processor: number
}

// Vitest calls the tests of a suite skipped whose hook failed
const isBelowFailure = ({ parent }: TestCase | TestSuite): boolean =>
  parent.errors().length > 0 || (parent.type === 'suite' && isBelowFailure(parent))

const withCauses = (error: SerializedError): ReadonlyArray<SerializedError> =>
  error.cause === undefined ? [error] : [error, ...withCauses(error.cause)]

const keyOf = ({ project, moduleId }: { readonly project: { readonly name: string }; readonly moduleId: string }) =>
  `${project.name} ${moduleId}`

const time = (ms: number): string => {
  const seconds = Math.round(ms / 1000)
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}
const lines = (text: string, indent: string): string => text.replace(/^(?=.)/gm, indent)

// A reason that a test gives by `skip('...')`, or that the name of its suite has in brackets
const whySkipped = (test: TestCase): string => {
  const result = test.result()
  const note = result?.state === 'skipped' ? result.note : undefined
  return (
    note ??
    /no \S+ on the PATH; [\w -]+/.exec(test.fullName)?.[0] ??
    `the spec says so: ${test.module.relativeModuleId}`
  )
}

export default class Progress implements Reporter {
  #vitest!: Vitest
  #begun = 0
  #timer: NodeJS.Timeout | undefined
  #isLineOpen = false
  readonly #weights = new Map<string, number>()
  #done = { files: 0, weight: 0, passed: 0, failed: 0, skipped: 0 }
  readonly #files: Figures[] = []
  readonly #skipped = new Map<string, number>()

  readonly #isTerminal = process.stdout.isTTY && process.env['CI'] === undefined

  onInit(vitest: Vitest): void {
    this.#vitest = vitest
  }

  onTestRunStart(specifications: ReadonlyArray<TestSpecification>): void {
    this.#begun = Date.now()
    const known = specifications.map((one) => ({ one, ms: this.#lastDuration(one) }))
    const durations = known.flatMap(({ ms }) => ms ?? [])
    // Without a run before this one, long files take long
    const usual = durations.length === 0 ? 1 : durations.reduce((sum, ms) => sum + ms, 0) / durations.length
    for (const { one, ms } of known) {
      const unknown = durations.length === 0 ? statSync(one.moduleId).size : usual
      this.#weights.set(keyOf(one), ms ?? unknown)
    }
    this.#timer = setInterval(() => this.#showProgress(), this.#isTerminal ? 1000 : 60_000).unref()
    this.#showProgress()
  }

  onTestCaseResult(test: TestCase): void {
    const { state, errors } = test.result() ?? { state: 'pending' }
    if (state === 'failed') this.#fail(test, test.fullName, errors ?? [])
  }

  onTestSuiteResult(suite: TestSuite): void {
    if (suite.errors().length > 0) this.#fail(suite, suite.fullName, suite.errors())
  }

  onTestModuleEnd(module: TestModule): void {
    if (module.errors().length > 0) this.#fail(module, 'the file itself', module.errors())
    this.#done.files += 1
    this.#done.weight += this.#weights.get(keyOf(module)) ?? 0
    for (const test of module.children.allTests()) {
      const state = test.result()?.state
      if (state === 'passed') this.#done.passed += 1
      if (state !== 'skipped' || isBelowFailure(test)) continue
      this.#done.skipped += 1
      const why = whySkipped(test)
      this.#skipped.set(why, (this.#skipped.get(why) ?? 0) + 1)
    }
    const { duration, collectDuration } = module.diagnostic()
    this.#files.push({
      name: `${module.relativeModuleId} (${module.project.name})`,
      seconds: (duration + collectDuration) / 1000,
      processor: module.meta().processorSeconds ?? 0,
    })
    if (this.#isTerminal) this.#showProgress()
  }

  onTestRunEnd(
    _modules: ReadonlyArray<TestModule>,
    unhandled: ReadonlyArray<SerializedError>,
    reason: TestRunEndReason,
  ): void {
    clearInterval(this.#timer)
    for (const error of unhandled) this.#fail(undefined, 'an error outside of a test', [error])
    this.#write('')
    if (this.#files.length > 10) {
      const all = this.#files.reduce((sum, { processor }) => sum + processor, 0)
      this.#write(`the ten slowest files, of ${Math.round(all)} s of processor time:`)
      const slowest = this.#files.toSorted((a, b) => b.processor - a.processor).slice(0, 10)
      for (const { name, seconds, processor } of slowest) {
        this.#write(`  ${processor.toFixed(1).padStart(6)} s, from begin to end ${seconds.toFixed(1)} s: ${name}`)
      }
    }
    for (const [why, count] of this.#skipped) this.#write(`skipped ${count}: ${why}`)
    if (reason === 'interrupted') this.#write('interrupted')
    const { passed, failed, skipped } = this.#done
    this.#write(`${passed} passed, ${failed} failed, ${skipped} skipped, in ${time(Date.now() - this.#begun)}`)
    this.#saveFigures()
  }

  #lastDuration(specification: TestSpecification): number | undefined {
    const { project, moduleId } = specification
    const key = `${project.name}:${relative(this.#vitest.config.root, moduleId)}`
    return this.#vitest.cache.getFileTestResults(key)?.duration
  }

  #showProgress(): void {
    const all = [...this.#weights.values()].reduce((sum, weight) => sum + weight, 0)
    const spent = Date.now() - this.#begun
    const { files, weight, failed } = this.#done
    const left = weight === 0 ? '' : `, ${time((spent * (all - weight)) / weight)} left`
    const line = `${files} of ${this.#weights.size} files, ${failed} failed, ${time(spent)}${left}`
    if (!this.#isTerminal) return this.#write(line)
    this.#isLineOpen = true
    process.stdout.write(`\r\u001B[2K${line}`)
  }

  #fail(
    of: TestCase | TestSuite | TestModule | undefined,
    title: string,
    errors: ReadonlyArray<SerializedError>,
  ): void {
    this.#done.failed += 1
    const module = of === undefined || of.type === 'module' ? of : of.module
    const where = module === undefined ? '' : `${module.relativeModuleId} (${module.project.name})`
    this.#write(`\nFAILED ${where}\n  ${title}`)
    // why a case of a property failed is a cause
    for (const error of errors.flatMap(withCauses)) {
      this.#write(lines(`${error.name ?? 'Error'}: ${error.message}`, '    '))
      const { diff } = error
      if (typeof diff === 'string') this.#write(lines(diff, '    '))
      for (const { file, line, column } of error.stacks ?? []) {
        this.#write(`    at ${relative(this.#vitest.config.root, file)}:${line}:${column}`)
      }
      if (error.stacks === undefined && error.stack !== undefined) this.#write(lines(error.stack, '    '))
    }
    const logs = of === undefined ? [] : (experimental_getRunnerTask(of).logs ?? [])
    const printed = logs.map(({ content }) => content).join('')
    if (printed !== '') this.#write(lines(`it printed:\n${printed.slice(0, LOGS)}`, '    '))
  }

  #write(text: string): void {
    if (this.#isLineOpen) process.stdout.write('\r\u001B[2K')
    this.#isLineOpen = false
    process.stdout.write(`${this.#isTerminal ? text : stripVTControlCharacters(text)}\n`)
  }

  // What each file took, for who wants to make the suite faster
  #saveFigures(): void {
    const path = process.env['FIGURES_OF_RUN']
    if (path !== undefined) writeFileSync(path, JSON.stringify(this.#files))
  }
}
