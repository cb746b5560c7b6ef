/** Every rule that a comment or a title cites is in `spec/requirements.md`, and `spec/rules.md` says where it is tested. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { citations, decisions, decisionsCited, ruleIds, rulesTable, specsOf } from '../support/papers/rules.js'
import { repository } from '../support/projects/typecheck.js'

const everywhere = ['src', 'spec', 'examples']

describe('spec/requirements.md', () => {
  it('has each id once', () => {
    const rules = ruleIds.filter((id) => !/^\d$/.test(id))
    expect(rules.length).toBeGreaterThan(150)
    expect(rules.filter((id, at) => rules.indexOf(id) !== at)).toStrictEqual([])
  })

  it('holds every rule that src, spec and examples cite', () => {
    const cited = citations(...everywhere)
    expect(cited.length).toBeGreaterThan(300)
    expect(cited.filter(({ id }) => !ruleIds.includes(id))).toStrictEqual([])
  })

  it('cites each rule about secrets, hooks, lists and levels in a spec', () => {
    const rules = ruleIds.filter((id) => /^(?:[CKMOPTW]-|5\.[1-356]\.\d|7\.\d)/.test(id))
    const tested = specsOf()
    expect(rules.length).toBeGreaterThan(50)
    expect(rules.filter((id) => !tested.has(id))).toStrictEqual([])
  })

  it('holds every decision that src, spec and examples cite', () => {
    const known = (question: string) => decisions.some((decision) => decision === question)
    expect(decisionsCited(...everywhere).filter(({ id }) => !known(id))).toStrictEqual([])
  })
})

// The table is between these two lines; WRITE_RULES=1 rewrites it
const begin = '<!-- rules -->\n\n'
const end = '\n\n<!-- end of rules -->'

describe('spec/rules.md', () => {
  const path = `${repository}spec/rules.md`
  const text = readFileSync(path, 'utf8')
  const [before = '', rest = ''] = text.split(begin)
  const [table = '', after = ''] = rest.split(end)
  if (process.env['WRITE_RULES'] !== undefined) writeFileSync(path, before + begin + rulesTable() + end + after)

  const cited = citations('spec')
  const rows = [...table.matchAll(/^\| (\S+) \| (.+) \|$/gm)]
    .filter(([, id]) => id !== 'Rule' && id !== '---')
    .map(([, id = '', files = '']) => ({
      id,
      files: [...files.matchAll(/\]\(([^)]+)\)/g)].map(([, file = '']) => file),
    }))

  it('names for each rule only specs that cite it', () => {
    expect(rows.length).toBeGreaterThan(100)
    for (const { id, files } of rows) {
      expect(files, id).not.toStrictEqual([])
      for (const file of files) {
        expect(existsSync(`${repository}spec/${file}`), `${file}: WRITE_RULES=1 writes the table anew`).toBe(true)
        expect(
          cited.some((one) => one.id === id && one.file === `spec/${file}`),
          `${id} in ${file}`,
        ).toBe(true)
      }
    }
  })

  it('has a row for each rule that a spec cites', () => {
    const missing = new Set(cited.filter(({ file }) => file.endsWith('.spec.ts')).map(({ id }) => id))
    for (const { id } of rows) missing.delete(id)
    expect([...missing], 'WRITE_RULES=1 writes the table anew').toStrictEqual([])
  })
})
