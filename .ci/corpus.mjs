// `npm run corpus -- URL`: sends the hostile requests of spec/data to a server that has routes of its contract.
// `npm run corpus`: sends them to ten guards of Koa, Express, Fastify and Hono, and writes the tables of the guide.
import { spawnSync } from 'node:child_process'

const steps =
  process.argv.length > 2
    ? [['node', 'spec/data/runner.mjs', ...process.argv.slice(2)]]
    : [
        ['npm', 'run', '--silent', 'build'],
        ['npm', '--prefix', 'spec/peers', 'ci', '--ignore-scripts', '--silent'],
        ['npm', '--prefix', 'spec/peers', 'run', '--silent', 'corpus'],
        ['npx', 'prettier', '--write', '--log-level', 'warn', 'examples/guides/hostile-requests.md'],
      ]
for (const [command, ...args] of steps) {
  const { status } = spawnSync(command, args, { stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}
