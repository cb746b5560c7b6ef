/** What the Markdown files say that a program can check: links lead somewhere, the README is short and its answer is true. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { documents } from '../support/docExamples.js'
import { brokenLink, linksOf, papers } from '../support/papers.js'
import { repository } from '../support/typecheck.js'

const read = (path: string) => readFileSync(repository + path, 'utf8')

describe('papers', () => {
  it('are found', () => {
    expect(papers()).toEqual(
      expect.arrayContaining(['README.md', 'CHANGELOG.md', 'spec/README.md', 'examples/README.md']),
    )
    expect(papers().flatMap(linksOf).length).toBeGreaterThan(100)
  })

  it.each(papers())('%s: every link leads to a file or a heading', (paper) => {
    expect(linksOf(paper).flatMap((link) => brokenLink(link) ?? [])).toStrictEqual([])
  })

  it('every guide is listed among the guides, once', () => {
    const listed = linksOf('examples/guides/README.md').map(({ target }) => `examples/guides/${target}`)
    const guides = documents().filter((path) => path.startsWith('examples/guides/') && !path.endsWith('README.md'))
    expect(listed.sort()).toStrictEqual(guides)
  })

  it('tell no path of a machine', () => {
    for (const paper of papers())
      expect(read(paper), paper).not.toMatch(/(?:^|[\s`'"(])(?:\/home\/|\/Users\/|\/work\/|\/tmp\/)/m)
  })
})
