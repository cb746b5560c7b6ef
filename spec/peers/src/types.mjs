/**
 * The type that TypeScript knows of the user in a handler. Each program of types/ gives it to a variable of the type
 * `Shown`, which nothing fits, so the compiler names it in its error. What is `any` fits everything.
 */
import { spawnSync } from 'node:child_process'
import { here } from './guide.mjs'

let output

const compiled = () => {
  output ??= spawnSync('node', [here('../node_modules/typescript/bin/tsc'), '-p', here('../types')], {
    encoding: 'utf8',
  }).stdout
  return output
}

/** The type, in the compiler's words. */
export const typeOf = (name) => {
  const file = `${name.replace(/^@/, '').replaceAll('/', '-').toLowerCase()}.ts`
  const lines = compiled().split('\n')
  const at = lines.findIndex((line) => line.includes(file))
  if (at === -1) return '`any`'
  const said = /Type '(.+)' is not assignable to type 'Shown'|missing in type '(.+)' but required in type 'Shown'/
  const [, other, lacking] = said.exec(lines[at]) ?? []
  const found = other ?? lacking
  if (found === undefined) return lines[at]
  // The first members of a long type tell enough
  return `\`${found.replace(/^(\{(?: [^;]+;){2}).{40,}(?= \})/, '$1 …')}\``
}
