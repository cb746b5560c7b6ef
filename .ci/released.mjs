// `node .ci/released.mjs`: ends with 0 if the commit of the last release is here, which npm run bench -- --against release
// compares with. A clone of depth 1 has it once it is fetched.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

const { commit } = JSON.parse(readFileSync('spec/bench/releases.json', 'utf8')).at(-1)
const git = (...args) => spawnSync('git', args, { stdio: 'ignore' }).status === 0
const isHere = () => git('cat-file', '-e', `${commit}^{commit}`)
if (!isHere()) git('fetch', '--quiet', '--depth=1', 'origin', commit)
if (!isHere()) {
  console.log(`== skipped: commit ${commit} of the last release is neither in this clone nor at its origin`)
  process.exitCode = 1
}
