/** The specs that the guide "Advisories" names run, and the tests that it names pass. */
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'
import { repository } from '../support/projects/typecheck.js'

interface Report {
  readonly testResults: ReadonlyArray<{
    readonly name: string
    readonly assertionResults: ReadonlyArray<{ readonly fullName: string; readonly status: string }>
  }>
}

const named = [
  ...readFileSync(`${repository}examples/guides/advisories.md`, 'utf8').matchAll(
    /\[`([^`]+)`\]\(\.\.\/\.\.\/(spec\/[\w./-]+)\)/g,
  ),
].map(([, title = '', path = '']) => ({ title, path }))

const ran = async (files: ReadonlyArray<string>, args: ReadonlyArray<string>): Promise<Report['testResults']> => {
  if (files.length === 0) return []
  const folder = mkdtempSync(join(tmpdir(), 'advisories-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const output = join(folder, 'report.json')
  const own = ['vitest', 'run', ...args, '--maxWorkers=1', '--reporter=json', `--outputFile=${output}`, ...files]
  // a test that fails is in the report, too
  await promisify(execFile)('npx', own, { cwd: repository, maxBuffer: 1e8 }).catch(() => undefined)
  return (JSON.parse(readFileSync(output, 'utf8')) as Report).testResults
}

// the words of a title as Vitest writes it, where `%s`, `$name` and `${name}` were replaced
const titled = (title: string): RegExp =>
  new RegExp(
    title
      .replace(/^'(.*)'$/, '$1')
      .split(/%\w|\$\{?\w+\}?/)
      .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
      .join('.*'),
  )

it('each title that the guide names is that of a test that passes', async () => {
  const files = [...new Set(named.map(({ path }) => path))]
  const isFast = (file: string) => !/\.(?:slow|browser)\.spec/.test(file)
  const results = [
    ...(await ran(files.filter(isFast), [])),
    ...(await ran(
      files.filter((file) => !isFast(file)),
      ['--mode', 'rest'],
    )),
  ]
  const missing = named.filter(({ title, path }) => {
    const tests = results.filter(({ name }) => name.endsWith(path)).flatMap((one) => one.assertionResults)
    // Vitest cuts a long value of a table
    const isCut = (fullName: string) => title.startsWith(/'([^']+)…'/.exec(fullName)?.[1] ?? '\0')
    const isNamed = (fullName: string) => titled(title).test(fullName) || isCut(fullName)
    return !tests.some(({ fullName, status }) => status === 'passed' && isNamed(fullName))
  })
  expect(named.length).toBeGreaterThan(20)
  expect(missing).toStrictEqual([])
})
