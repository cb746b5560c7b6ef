// Adds up vitest's JSON reports: `node count.mjs <failed steps> <report> ...`. A report that is missing is a failure.
import { readFileSync } from 'node:fs'

const [stepsFailed, ...files] = process.argv.slice(2)
let passed = 0
let failed = 0
for (const file of files) {
  try {
    const report = JSON.parse(readFileSync(file, 'utf8'))
    passed += report.numPassedTests
    failed += report.numFailedTests
    // a suite that did not load has no tests to count
    failed += report.testResults.filter(
      (suite) => suite.status === 'failed' && suite.assertionResults.length === 0,
    ).length
  } catch {
    failed += 1
  }
}
if (stepsFailed !== '0' && failed === 0) failed = 1
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
