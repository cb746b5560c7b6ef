// Adds up vitest's JSON reports: `node count.mjs <failed steps> <report> ...`, and repeats what failed. A missing
// report is a failure.
import { readFileSync } from 'node:fs'

const [stepsFailed, ...files] = process.argv.slice(2)
let passed = 0
let failed = 0
const say = (name, messages) => {
  console.log(`failed: ${name}`)
  for (const message of messages) console.log(message.split('\n').slice(0, 8).join('\n').replace(/^/gm, '    '))
}
for (const file of files) {
  try {
    const report = JSON.parse(readFileSync(file, 'utf8'))
    passed += report.numPassedTests
    failed += report.numFailedTests
    for (const suite of report.testResults) {
      for (const { status, fullName, failureMessages } of suite.assertionResults) {
        if (status === 'failed') say(`${suite.name}: ${fullName}`, failureMessages)
      }
      // A suite that did not load, or whose hooks failed, has no failed test to count
      if (suite.status === 'failed' && !suite.assertionResults.some(({ status }) => status === 'failed')) {
        failed += 1
        say(suite.name, [suite.message])
      }
    }
  } catch (error) {
    failed += 1
    say(file, [String(error)])
  }
}
if (stepsFailed !== '0' && failed === 0) failed = 1
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
