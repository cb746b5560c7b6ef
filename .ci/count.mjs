// Adds up vitest's JSON reports: `node count.mjs <failed steps> <report> ...`, and repeats what failed. A missing report
// is a failure. If there is a `<report>.again`, its files replace those of the report.
//
// `node count.mjs --failed <report>` lists the files of a report in which something failed.
import { existsSync, readFileSync } from 'node:fs'

const suitesOf = (report) => JSON.parse(readFileSync(report, 'utf8')).testResults
const failuresIn = ({ name, status, message, assertionResults }) => {
  const failed = assertionResults.filter((test) => test.status === 'failed')
  // A suite that did not load, or whose hooks failed, has no failed test to count
  if (status === 'failed' && failed.length === 0) return [{ title: name, messages: [message] }]
  return failed.map(({ fullName, failureMessages }) => ({ title: `${name}: ${fullName}`, messages: failureMessages }))
}
const say = (what, { title, messages }) => {
  console.log(`${what}: ${title}`)
  for (const message of messages) console.log(message.split('\n').slice(0, 8).join('\n').replace(/^/gm, '    '))
}

const [first, ...reports] = process.argv.slice(2)
if (first === '--failed') {
  const failed = suitesOf(reports[0]).filter((suite) => failuresIn(suite).length > 0)
  for (const name of new Set(failed.map(({ name }) => name))) console.log(name)
} else {
  let passed = 0
  let failed = 0
  for (const report of reports) {
    try {
      const again = existsSync(`${report}.again`) ? suitesOf(`${report}.again`) : []
      const isReplaced = ({ name }) => again.some((suite) => suite.name === name)
      const suites = suitesOf(report)
      for (const suite of suites.filter(isReplaced)) {
        for (const failure of failuresIn(suite)) say('failed beside other files', failure)
      }
      for (const suite of [...suites.filter((one) => !isReplaced(one)), ...again]) {
        passed += suite.assertionResults.filter(({ status }) => status === 'passed').length
        const failures = failuresIn(suite)
        failed += failures.length
        for (const failure of failures) say('failed', failure)
      }
    } catch (error) {
      failed += 1
      say('failed', { title: report, messages: [String(error)] })
    }
  }
  if (first !== '0' && failed === 0) failed = 1
  console.log(`${passed} passed, ${failed} failed`)
  process.exitCode = failed === 0 ? 0 : 1
}
