/** The programs of a guide, as they are written there, and its tables of requests with their answers. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { posix } from 'node:path'
import { pathToFileURL } from 'node:url'
import type Koa from 'koa'
import { expect } from 'vitest'
import { repository } from '../projects/typecheck.js'
import { listen } from '../servers/server.js'
import { blocksOf } from './docExamples.js'

const pathOf = (guide: string): string => `examples/guides/${guide}.md`

let loaded = 0

/** What a program exports, made anew: the program with this index among the `ts` blocks of the file, or with these words. */
export const programIn = async <Exports>(path: string, which: number | string): Promise<Exports> => {
  const blocks = blocksOf(path)
  const block = typeof which === 'number' ? blocks[which] : blocks.find(({ code }) => code.includes(which))
  const folder = `${repository}spec/.generated/${posix.basename(path, '.md')}-${process.pid}-${loaded++}`
  mkdirSync(folder, { recursive: true })
  writeFileSync(`${folder}/program.ts`, block?.code ?? '')
  // Safe: the caller knows what the block exports
  const made = (await import(/* @vite-ignore */ pathToFileURL(`${folder}/program.ts`).href)) as Exports
  rmSync(folder, { recursive: true })
  return made
}

/** The same of a guide. */
export const guideProgram = <Exports>(guide: string, which: number | string): Promise<Exports> =>
  programIn(pathOf(guide), which)

/** The same, served until the test has finished. `prepare` is called before. */
export const servedProgram = async <Exports extends { readonly app: Koa }>(
  guide: string,
  which: number | string,
  prepare?: (made: Exports) => unknown,
) => {
  const made = await guideProgram<Exports>(guide, which)
  await prepare?.(made)
  const { url } = await listen(made.app)
  return { ...made, url }
}

type Row = readonly [request: string, answer: string]

/** The tables of a guide with the columns "Request" and "Answer". */
const tablesOf = (guide: string): ReadonlyArray<ReadonlyArray<Row>> =>
  [
    ...readFileSync(repository + pathOf(guide), 'utf8').matchAll(/^\| Request[^|]*\| Answer *\|\n.*\n((?:\|.*\n)+)/gm),
  ].map(([, rows = '']) =>
    [...rows.matchAll(/^\| (.+?) +\| (.+?) +\|$/gm)].map(([, request = '', answer = '']) => [request, answer] as const),
  )

/**
 * Tries each row of a table, in its order. A way sends the request of its row, and returns what it saw: each of it is in the cell, and
 * each status and each code of the cell is among it.
 */
export const tryTable = async (
  guide: string,
  number: number,
  ways: Readonly<Record<string, () => Promise<ReadonlyArray<string>>>>,
): Promise<void> => {
  const rows = tablesOf(guide)[number - 1] ?? []
  expect(Object.keys(ways)).toStrictEqual(rows.map(([request]) => request))
  for (const [request, answer] of rows) {
    const seen = (await ways[request]?.()) ?? []
    const said = [...answer.matchAll(/`([^`]+)`|\b(\d{3})\b/g)].map(([, code, status = '']) => code ?? status)
    for (const one of seen) expect(answer.replaceAll('`', ''), request).toContain(one)
    expect(seen, request).toEqual(expect.arrayContaining(said))
  }
}

/** How many of these tables a guide has, so that no table is left out. */
export const numberOfTables = (guide: string): number => tablesOf(guide).length
