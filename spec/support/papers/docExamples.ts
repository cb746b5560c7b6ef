/**
 * Finds the examples in the documentation: every `@example` of the sources, and the fenced `ts` blocks of the Markdown
 * files.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { repository } from '../projects/typecheck.js'

/** One example. */
export interface DocExample {
  /** File and line: `src/core/Challenge.ts:7`. */
  readonly place: string
  readonly code: string
  /** Whether it is run, or only typechecked. */
  readonly runs: boolean
}

/** The sources, as paths from the repository. */
export const sources = (): string[] =>
  readdirSync(`${repository}src`, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => `src/${path}`)
    .sort()

const lineOf = (text: string, at: number): number => text.slice(0, at).split('\n').length

// From the line after the tag to the next tag or the end of the comment, without the stars of the comment
const example = /^[ \t]*\* @example[ \t]*\n((?:(?!^[ \t]*\*\/|^[ \t]*\* @\w)[^\n]*\n)*)/gm

/** Every `@example` of a source. */
export const examplesOf = (path: string): DocExample[] => {
  const text = readFileSync(repository + path, 'utf8')
  return [...text.matchAll(example)].map(({ index, 1: code = '' }) => ({
    place: `${path}:${lineOf(text, index)}`,
    code: code.replace(/^[ \t]*\* ?/gm, ''),
    runs: true,
  }))
}

const fence = /^```(\w+)([^\n]*)\n([\s\S]*?)^```$/gm

/** The Markdown files whose `ts` blocks are typechecked and run: README, front page of the website, and guides. */
export const documents = (): string[] => [
  'README.md',
  '.ci/frontPage.md',
  ...readdirSync(`${repository}examples/guides`)
    .filter((name) => name.endsWith('.md'))
    .map((name) => `examples/guides/${name}`)
    .sort(),
]

/** The fenced blocks of one language in a Markdown file, or none if the file does not exist. `no-run` is only typechecked. */
export const fencesOf = (path: string, language: string): DocExample[] => {
  if (!existsSync(repository + path)) return []
  const text = readFileSync(repository + path, 'utf8')
  return [...text.matchAll(fence)].flatMap(({ index, 1: of, 2: info = '', 3: code = '' }) =>
    of === language ? [{ place: `${path}:${lineOf(text, index)}`, code, runs: info.trim() !== 'no-run' }] : [],
  )
}

/** The fenced `ts` blocks of a Markdown file. */
export const blocksOf = (path: string): DocExample[] => fencesOf(path, 'ts')

/** All of them. */
export const allExamples = (): DocExample[] => [...sources().flatMap(examplesOf), ...documents().flatMap(blocksOf)]

// Readers copy the blocks of guides unchanged, so only the examples of docstrings get an import of `assert`
const needsAssert = ({ place, code }: DocExample) =>
  place.startsWith('src/') && !/from '(?:node:)?assert(?:\/strict)?'/.test(code)

/** An example as a module. `assert` is imported on its first line, so that line numbers agree. */
export const moduleOf = (example: DocExample): string =>
  `${needsAssert(example) ? "import assert from 'node:assert'; " : ''}${example.code}\nexport {}\n`
