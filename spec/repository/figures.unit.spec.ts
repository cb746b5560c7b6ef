/**
 * The report of the benchmark: which targets are met, which figures have changed, and that the README shows the stored
 * figures.
 */
import { readFileSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { expectAlike } from '../bench/src/alike.js'
import { reasons } from '../bench/src/reasons.js'
import { asMarkdown, targets, withFigures, type Figures } from '../bench/src/report.js'
import { verdict, type Row, type Section } from '../bench/src/Section.js'
import { ofProcesses } from '../bench/src/statistics.js'

const folder = fileURLToPath(new URL('../bench/', import.meta.url))
const read = (name: string): string => readFileSync(`${folder}${name}`, 'utf8')
const kept: Figures = JSON.parse(read('figures.json'))

const between = (low: number, high: number) => ({ value: (low + high) / 2, low, high })
const row = (given: Partial<Row>): Row => ({ name: 'one', value: between(1, 1), unit: 'times', ...given })
const section = (...rows: ReadonlyArray<Row>): Section => ({ title: 'Some', rows })
describe('a row of the benchmark', () => {
  it.each<readonly [string, Partial<Row>, ReturnType<typeof verdict>]>([
    ['is met if its whole interval is', { value: between(1.01, 1.04), target: 1.05 }, 'met'],
    ['is not met if no part of its interval is', { value: between(1.06, 1.08), target: 1.05 }, 'not met'],
    ['is not decided if only a part of its interval is', { value: between(1.04, 1.06), target: 1.05 }, 'not decided'],
    ['is not decided without a figure', { value: between(1, Infinity), target: 1.05 }, 'not decided'],
    [
      'is not decided without one in JSON',
      JSON.parse('{"target":1.05,"value":{"value":1,"low":null,"high":1}}'),
      'not decided',
    ],
    ['is not decided with such a control', { value: between(1, 1), target: 1.05, control: between(1, Infinity) }, 'not decided'], // prettier-ignore
    ['may have a lower limit as its target, and meet it', { value: between(0.98, 1), atLeast: 0.98 }, 'met'],
    ['may have a lower limit as its target, and miss it', { value: between(0.9, 0.95), atLeast: 0.98 }, 'not met'],
    [
      'is not decided if its control deviates by more than the distance to the target',
      { value: between(1.01, 1.02), target: 1.05, control: between(1.05, 1.07) },
      'not decided',
    ],
    [
      'is decided if its control deviates by less',
      { value: between(1.01, 1.02), target: 1.05, control: between(1.01, 1.03) },
      'met',
    ],
    [
      'has a control near 0 in other units',
      { unit: 'KB', value: between(0.8, 0.9), target: 1, control: between(0, 0.1) },
      'met',
    ],
    [
      'is not decided if it deviates like its control',
      { value: between(0.95, 0.96), atLeast: 0.98, control: between(0.95, 0.96) },
      'not decided',
    ],
    ['has no verdict without a target', { value: between(2, 3) }, undefined],
  ])('%s', (_, given, expected) => {
    expect(verdict(row(given), section())).toBe(expected)
  })

  it('uses the control of its section if it has none', () => {
    const one = row({ value: between(1.01, 1.02), target: 1.05 })
    expect(verdict(one, { ...section(one), control: between(0.8, 0.9) })).toBe('not decided')
  })
})

describe('contestants of the benchmark', () => {
  const listener =
    (vary: string): RequestListener =>
    (_request, response) =>
      void response.setHeader('Vary', vary).end('yes')
  const question = { name: 'a question', url: '/x', headers: {}, status: 200 }

  it('are compared if all give the same response', async () => {
    await expectAlike(question, { hand: listener('Cookie'), ours: listener('Cookie') })
  })
  it('are not compared if a header differs', async () => {
    const both = { hand: listener('Cookie'), ours: listener('Origin') }
    await expect(expectAlike(question, both)).rejects.toThrow(
      /^a question: contestants answer differently[^]+Cookie[^]+Origin/,
    )
  })
  it('are not compared if the status is not the expected one', async () => {
    const both = { hand: listener('Cookie'), ours: listener('Cookie') }
    await expect(expectAlike({ ...question, status: 401 }, both)).rejects.toThrow('401 was expected of all')
  })
})

describe('a median over processes', () => {
  it('has an interval as wide as the difference of the processes', () => {
    const near = ofProcesses([Array(20).fill(1), Array(20).fill(1.01), Array(20).fill(1.02)])
    expect(near).toEqual({ value: 1.01, low: 1, high: 1.02 })
  })
  it('has an interval as wide as the difference of the rounds of one process', () => {
    const { low, high } = ofProcesses([[1, 2, 3, 4, 5, 6, 7, 8, 9]])
    expect(low).toBeLessThan(5)
    expect(high).toBeGreaterThan(5)
  })
})

it.each(['Deliberate faults, by room', 'Files that were measured whole'])(
  'the mutants of "%s" are of a commit',
  (part) => {
    const text = readFileSync(fileURLToPath(new URL('../mutants.md', import.meta.url)), 'utf8')
    expect(text.split('\n## ').find((one) => one.startsWith(part))).toMatch(/commit\s`[0-9a-f]{8}`, \d{4}-\d{2}-\d{2}/)
  },
)

describe('the stored figures', () => {
  it('are the figures in the README of the benchmark', () => {
    const tables = (text: string) => text.replace(/ +/g, ' ').replace(/-+/g, '-')
    expect(tables(read('README.md'))).toBe(tables(withFigures(read('README.md'), kept)))
  })
  it('name the machine by its processor and Node, without a path or a host', () => {
    expect(kept.machine).toMatch(/^\d+ x .+, Node [\d.]+, \w+ \w+$/)
    expect(read('figures.json')).not.toMatch(/\/(?:home|root|work|tmp|Users)\/|localhost|https?:/)
  })
  it('say for each target whether it is met', () => {
    expect(targets(kept.sections)).toMatch(/^Targets: \d+ met, \d+ not met, \d+ not decided\n/)
    const names = kept.sections.flatMap((one) => one.rows.filter((some) => verdict(some, one) !== undefined))
    for (const { name } of names) expect(read('README.md')).toContain(`: ${name} `)
  })
  it('come with each target that is not met, its figure and the reason; no reason has a figure, or a row that is gone', () => {
    const missed = kept.sections.flatMap((one) =>
      one.rows.filter((some) => verdict(some, one) === 'not met').map(({ name }) => `${one.title}: ${name}`),
    )
    expect(missed.length).toBeGreaterThan(0)
    const lines = asMarkdown(kept)
      .split('\n')
      .filter((line) => line.startsWith('- **'))
    for (const name of missed) {
      const found = lines.filter((line) => line.startsWith(`- **${name}**: `))
      expect([name, found.length]).toEqual([name, 1])
      expect(found[0]).toMatch(/: [\d.]+ \S+, target at (?:most|least) [\d.]+, not met\. [A-Z]/)
    }
    const names = new Set(kept.sections.flatMap(({ rows }) => rows.map(({ name }) => name)))
    for (const [name, reason] of Object.entries(reasons)) {
      expect(names).toContain(name)
      expect(reason).not.toMatch(/\d/)
    }
  })
  // the sentence, the row, and the figures for which it is true
  const about = (us: number) => (figure: number) => Math.round(figure) === us
  const noLonger = (times: number) => times < 1.02
  it.each<[string, string, string, (figure: number) => boolean]>([
    ['README.md', 'A guard adds about 2 us to a request of bare Koa', 'added to bare Koa: ours', about(2)],
    ['examples/guides/guarding.md', 'A guard adds about 2 us to a request', 'added to bare Koa: ours', about(2)],
    ['examples/guides/events.md', 'A listener costs about a microsecond', 'a listener adds: accepted', about(1)],
    ...['in memory', 'on Redis'].map((name): [string, string, string, typeof noLonger] => [
      ...(['examples/guides/how-far-it-goes.md', 'takes no longer than a request of koa-session'] as const),
      name,
      noLonger,
    ]),
  ])('bear the sentence of %s: %s (%s)', (path, sentence, name, isTrue) => {
    const text = readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8')
    expect(text.replace(/\s+/g, ' ')).toContain(sentence)
    const rows = kept.sections.flatMap((one) => one.rows.filter((some) => some.name === name))
    expect(rows.map(({ value }) => isTrue(value.value))).toEqual([true])
  })
  it('say so if they come from a quick run', () => {
    expect(asMarkdown({ ...kept, quick: true })).toContain('by a quick run')
    expect(asMarkdown({ ...kept, quick: false })).not.toContain('by a quick run')
  })
})
