/** Plain words: the words that `.github/CONTRIBUTING.md` lists under "Not" are not used. */
import { describe, expect, it } from 'vitest'
import { papers } from '../support/papers/papers.js'
import { programs } from '../support/papers/rules.js'
import { usesInMarkdown, usesInProgram, usesInSource, words } from '../support/papers/words.js'

const checked = ['src', 'spec', 'examples'].flatMap(programs)

// These two files contain the words themselves
const isChecked = (path: string) => !/\/words(?:\.unit\.spec)?\.ts$/.test(path)

describe('plain words', () => {
  it('each word is found in comments, strings and names, except where it is quoted', () => {
    const program = (word: string) =>
      `/* ${word} */ const a = '${word}' // ${word}\nconst b = \`x ${word} ${'${a}'} ${word}\`\n// \`${word}\` is quoted`
    const samples = ['nobody', 'mend', 'a text', 'told', 'stands', "one's own", 'at once or later', 'comes behind']
    for (const sample of samples) {
      const uses = usesInSource(program(sample).replace(`'${sample}'`, JSON.stringify(sample)), 'x.ts')
      expect(
        uses.map(({ where }) => where),
        sample,
      ).toStrictEqual(['x.ts:1', 'x.ts:2', 'x.ts:2', 'x.ts:1', 'x.ts:1'])
    }
    expect(usesInSource('const welcomesNobody = 1', 'x.ts')).toHaveLength(1)
    expect(usesInSource('const toldBy = 1, tellingScopes = 1, one = tellsNothing', 'x.ts')).toHaveLength(3)
    expect(usesInSource('// `null` stands for public, told by no one', 'x.ts')).toHaveLength(1)
    expect(usesInSource('const hooks = [none, context, recommend]', 'x.ts')).toStrictEqual([])
    expect(words.length).toBeGreaterThan(samples.length)
  })

  it.each(papers().filter(isChecked))('%s', (paper) => {
    expect(usesInMarkdown(paper)).toStrictEqual([])
  })

  it.each(checked.filter(isChecked).sort())('%s', (program) => {
    expect(usesInProgram(program)).toStrictEqual([])
  })
})
