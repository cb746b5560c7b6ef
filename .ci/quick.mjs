// Unit tests and laws with few cases, in a minute: `npm run test:quick`. `npm run test:quick -- core keys` runs these rooms.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'

// They run a suite under each of its mutants, or hash passwords
const long = ['testing', 'passwords']
// The rooms of src. The other folders of spec are about all rooms, and compile programs or read every source.
const rooms = readdirSync('spec').filter((folder) => existsSync(`src/${folder}`) && !long.includes(folder))

const given = process.argv.slice(2).map((one) => (existsSync(`spec/${one}`) ? `spec/${one}/` : one))
const chosen = given.length > 0 ? given : rooms.map((room) => `spec/${room}/`)
const { status } = spawnSync(
  process.execPath,
  ['node_modules/vitest/vitest.mjs', 'run', '--mode', 'quick', ...chosen],
  {
    stdio: 'inherit',
  },
)
process.exitCode = status ?? 1
