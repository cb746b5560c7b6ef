// Unit tests and laws with few cases, in a minute: `npm run test:quick`. `npm run test:quick -- core keys` runs these rooms.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'

// They compile programs, hash passwords, or run a suite under each of its mutants
const long = ['repository', 'types', 'testing', 'requests', 'passwords', 'stores']

const given = process.argv.slice(2).map((one) => (existsSync(`spec/${one}`) ? `spec/${one}/` : one))
const chosen = given.length > 0 ? given : long.flatMap((room) => ['--exclude', `spec/${room}/**`])
const { status } = spawnSync(
  process.execPath,
  ['node_modules/vitest/vitest.mjs', 'run', '--mode', 'quick', ...chosen],
  {
    stdio: 'inherit',
  },
)
process.exitCode = status ?? 1
