/**
 * `npm run evidence`: runs each command `npx vitest run ...` that is in a table of the guide "What it was tested with", and
 * writes how many tests passed into the column before it, and the day. `npm run evidence -- jwt` runs those with this word.
 *
 * `npm run vectors -- FOLDER --save` and `npm run size -- --save` write the other figures of the guide.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'

const guide = 'examples/guides/tested-with.md'
const [word = ''] = process.argv.slice(2)
let failed = 0

const run = (command) => {
  const [program, ...args] = command.split(' ')
  const { stdout } = spawnSync(program, [...args, '--maxWorkers=1'], { encoding: 'utf8' })
  const [, passed, wrong] = /^([\d,]+) passed, ([\d,]+) failed/m.exec(stdout) ?? []
  if (passed === undefined || wrong !== '0') failed++
  console.log(`${command}: ${passed ?? 'no'} tests${wrong === '0' ? '' : ', FAILED'}`)
  return passed ?? '?'
}

const read = () => readFileSync(guide, 'utf8')
const commandOf = (line) => /`(npx vitest run [^`]+)` *\|$/.exec(line)?.[1]
const commands = read()
  .split('\n')
  .flatMap((line) => commandOf(line) ?? [])
for (const command of commands.filter((one) => one.includes(word))) {
  const passed = run(command)
  // the file may have changed while it ran
  const lines = read().split('\n')
  const counted = lines.map((line) => {
    if (commandOf(line) !== command) return line
    const cells = line.split('|')
    cells[cells.length - 3] = ` ${passed} `
    return cells.join('|')
  })
  writeFileSync(guide, counted.join('\n'))
}

const today = new Date().toISOString().slice(0, 10)
// what was measured of mutants, in the words of its page
const [mutants] = /^All files before: [\d,]+ of [\d,]+ \([\d.]+ %\)/m.exec(readFileSync('spec/mutants.md', 'utf8')) ?? [
  '',
]
const text = read()
  .replace(/counted on \d{4}-\d\d-\d\d/, word === '' ? `counted on ${today}` : '$&')
  .replace(/(?<=noticed )[\d,]+ of [\d,]+ \([\d.]+ %\)/, mutants.replace('All files before: ', ''))
writeFileSync(guide, text)
spawnSync('npx', ['prettier', '--write', '--log-level', 'warn', guide], { stdio: 'inherit' })
process.exitCode = failed === 0 ? 0 : 1
