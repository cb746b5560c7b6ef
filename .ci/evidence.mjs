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
  const [, passed, wrong, skipped] = /^([\d,]+) passed, ([\d,]+) failed, ([\d,]+) skipped/m.exec(stdout) ?? []
  // what was skipped shows nothing, and would make the number smaller
  const isWhole = wrong === '0' && skipped === '0'
  if (!isWhole) failed++
  console.log(
    `${command}: ${passed ?? 'no'} tests${isWhole ? '' : `, ${wrong ?? '?'} FAILED, ${skipped ?? '?'} SKIPPED`}`,
  )
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
const text = read().replace(/counted on \d{4}-\d\d-\d\d/, word === '' ? `counted on ${today}` : '$&')
writeFileSync(guide, text)
spawnSync('npx', ['prettier', '--write', '--log-level', 'warn', guide], { stdio: 'inherit' })
process.exitCode = failed === 0 ? 0 : 1
