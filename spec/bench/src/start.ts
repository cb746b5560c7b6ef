/**
 * Measures how long an application loads the package at its start, and the size of the package. Each import runs in a
 * separate process that has loaded Koa and the router already.
 */
import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { apart, oneByOne } from './inProcess.js'
import { row, type Section } from './Section.js'
import { exactly, medianOf } from './statistics.js'

const require = createRequire(import.meta.url)
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

const milliseconds = apart(import.meta.url, async (kind: Kind) => {
  const load = await kinds[kind]()
  const begun = performance.now()
  await load()
  return performance.now() - begun
})

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
export const start = async (processes: number): Promise<Section> => {
  const rounds = await oneByOne(processes, async () => {
    const took = new Map<Kind, number>()
    for (const name of names) took.set(name, await milliseconds(name))
    return (name: Kind): number => took.get(name) ?? Number.NaN
  })
  const of = (name: Kind) => medianOf(rounds.map((round) => round(name)))
  const beside = medianOf(rounds.map((round) => round('import (ES modules)') / round(alone)))
  return {
    title: 'Start and size',
    rows: [
      ...names.map((name) => row(name, of(name), 'ms', name === alone ? {} : { target: 40 })),
      row('import, beside that of Koa and the router', beside, 'times', { target: 1.2 }),
      row('packed, both module systems', exactly(packedKilobytes()), 'KB', { target: 300 }),
    ],
  }
}
