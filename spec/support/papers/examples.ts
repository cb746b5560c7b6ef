/** The examples as specs need them: their files, the rows of their README, and how often their handlers ran. */
import { readdirSync, readFileSync } from 'node:fs'
import type { Layer } from '@koa/router'

const folder = new URL('../../../examples/', import.meta.url)

// They combine the others, and show nothing themselves
const frame = ['app.ts', 'server.ts']

/** The file names of the examples. */
export const exampleFiles = (): string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.ts') && !frame.includes(name))
    .sort()

/** The text of an example. */
export const exampleText = (file: string): string => readFileSync(new URL(file, folder), 'utf8')

const row = /^\| \[([\w.]+)\]\(\1\) +\| `(curl [^`]+)` +\| (\d{3}) `([^`]*)` +\|$/

/** The rows of examples/README.md. Any other line in its table is an error. */
export const readmeRows = () =>
  exampleText('README.md')
    .split('\n')
    .filter((line) => line.startsWith('| ['))
    .map((line) => {
      const [, file = '', curl = '', status, body = ''] = row.exec(line) ?? []
      if (status === undefined)
        throw new Error(`not of the form | [file](file) | \`curl ...\` | 200 \`body\` |: ${line}`)
      return { file, curl, status: Number(status), body }
    })

interface Routed {
  readonly stack: Layer[]
}

/** The paths of a router's operations, below `/examples`. */
export const pathsOf = ({ stack }: Routed): string[] =>
  stack.filter(({ methods }) => methods.length > 0).map(({ path }) => `/examples${String(path)}`)

/** Counts how often the handlers of these routers run: it wraps the last function of each operation. */
export const countHandlers = (routers: ReadonlyArray<Routed>): { calls: number } => {
  const count = { calls: 0 }
  for (const layer of routers.flatMap(({ stack }) => stack)) {
    const handler = layer.stack.at(-1)
    if (layer.methods.length === 0 || handler === undefined) continue
    const counted: typeof handler = (ctx, next) => {
      count.calls++
      return handler(ctx, next)
    }
    layer.stack = [...layer.stack.slice(0, -1), counted]
  }
  return count
}
