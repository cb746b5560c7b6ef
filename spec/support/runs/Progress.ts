/** Vitest's own reporter. At the end of a run, also the sum, what was skipped and why, and which files took longest. */
import { writeFileSync } from 'node:fs'
import { DefaultReporter, type TestCase, type TestModule, type TestSuite } from 'vitest/node'

// Vitest calls the tests of a suite skipped whose hook failed
const isBelowFailure = ({ parent }: TestCase | TestSuite): boolean =>
  parent.errors().length > 0 || (parent.type === 'suite' && isBelowFailure(parent))

// A reason that a test gives by `skip('...')`
const whySkipped = (test: TestCase): string => {
  const result = test.result()
  return (result.state === 'skipped' && result.note) || `the spec says so: ${test.module.relativeModuleId}`
}

// What a file took, with the processor time of the processes that it started and that have ended
const figuresOf = (module: TestModule) => {
  const { duration, collectDuration } = module.diagnostic()
  return {
    name: `${module.relativeModuleId} (${module.project.name})`,
    seconds: (duration + collectDuration) / 1000,
    processor: module.meta().processorSeconds ?? 0,
  }
}

export default class Progress extends DefaultReporter {
  override onTestRunEnd(...[modules, unhandled, reason]: Parameters<DefaultReporter['onTestRunEnd']>): void {
    super.onTestRunEnd(modules, unhandled, reason)
    const files = modules.map(figuresOf).toSorted((a, b) => b.processor - a.processor)
    if (files.length > 10) {
      const all = files.reduce((sum, { processor }) => sum + processor, 0)
      this.log(`the ten slowest files, of ${Math.round(all)} s of processor time:`)
      for (const { name, seconds, processor } of files.slice(0, 10))
        this.log(`  ${processor.toFixed(1).padStart(6)} s, from begin to end ${seconds.toFixed(1)} s: ${name}`)
    }
    const tests = modules.flatMap(({ children }) => [...children.allTests()])
    const inState = (state: string) => tests.filter((test) => test.result().state === state)
    const skipped = inState('skipped').filter((test) => !isBelowFailure(test))
    const reasons = skipped.map(whySkipped)
    for (const why of new Set(reasons)) this.log(`skipped ${reasons.filter((one) => one === why).length}: ${why}`)
    // a suite or a file can fail, too
    const groups = modules.flatMap((module) => [module, ...module.children.allSuites()])
    const errors = groups.filter((one) => one.errors().length > 0).length + unhandled.length
    this.log(
      `${inState('passed').length} passed, ${inState('failed').length + errors} failed, ${skipped.length} skipped`,
    )
    // for who wants to make the suite faster
    const path = process.env['FIGURES_OF_RUN']
    if (path !== undefined) writeFileSync(path, JSON.stringify(files))
  }
}
