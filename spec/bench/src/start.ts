/**
 * Measures how long an application loads the package at its start, and the size of the package. Each import runs in a
 * separate process that has loaded Koa and the router already: `node dist/start.js <module system>` prints milliseconds
 * and modules.
 */
import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { Row, Section } from './Section.js'
import { medianOf } from './statistics.js'

const require = createRequire(import.meta.url)
const self = fileURLToPath(import.meta.url)
const root = fileURLToPath(new URL('../../../', import.meta.url))

const kinds = {
  'import (ES modules)': async () => {
    await import('koa')
    await import('@koa/router')
    return async () => void (await import('../../../dist/index.js'))
  },
  'require (CommonJS)': async () => {
    require('koa')
    require('@koa/router')
    return async () => void require('../../../dist/cjs/index.js')
  },
  'import of Koa and the router alone': async () => async () => {
    await import('koa')
    await import('@koa/router')
  },
} as const
type Kind = keyof typeof kinds
const names = Object.keys(kinds) as Kind[]
const alone: Kind = 'import of Koa and the router alone'

const milliseconds = (kind: Kind): number =>
  Number(execFileSync(process.execPath, [self, kind], { encoding: 'utf8', cwd: root }))

const packedKilobytes = (): number => {
  const text = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [{ size } = { size: Number.NaN }] = JSON.parse(text) as ReadonlyArray<{ readonly size: number }>
  return size / 1000
}

/** This many processes of each kind, in turns. */
export const start = (processes: number): Section => {
  const rounds = Array.from({ length: processes }, () => new Map(names.map((name) => [name, milliseconds(name)])))
  const of = (name: Kind): Row => ({
    name,
    value: medianOf(rounds.map((round) => round.get(name) ?? Number.NaN)),
    unit: 'ms',
    ...(name !== alone && { target: 40 }),
  })
  const beside = rounds.map((round) => (round.get('import (ES modules)') ?? NaN) / (round.get(alone) ?? NaN))
  const size = packedKilobytes()
  return {
    title: 'Start and size',
    rows: [
      ...names.map(of),
      {
        name: 'import, beside that of Koa and the router',
        value: medianOf(beside),
        unit: 'times',
        target: 1.2,
      },
      { name: 'packed, both module systems', value: { value: size, low: size, high: size }, unit: 'KB', target: 300 },
    ],
  }
}

if (process.argv[1] === self) {
  const load = await kinds[names.find((name) => name === process.argv[2]) ?? 'import (ES modules)']()
  const begun = performance.now()
  await load()
  console.log(performance.now() - begun)
}
