// `npm run mcp -- URL`: asks a protected server of the Model Context Protocol what it must do.
// `npm run mcp`: asks this package and the adapters of the SDK, and writes the table of the guide.
import { spawnSync } from 'node:child_process'

const steps =
  process.argv.length > 2
    ? [['node', 'spec/data/mcp.mjs', ...process.argv.slice(2)]]
    : [
        ['npm', 'run', '--silent', 'build'],
        ['npm', '--prefix', 'spec/peers', 'ci', '--ignore-scripts', '--silent'],
        ['npm', '--prefix', 'spec/peers', 'run', '--silent', 'mcp'],
        ['npx', 'prettier', '--write', '--log-level', 'warn', 'examples/guides/mcp-servers.md'],
      ]
for (const [command, ...args] of steps) {
  const { status } = spawnSync(command, args, { stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}
