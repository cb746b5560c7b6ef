/** The words that this repository does not use, and a search for them in comments, strings, names and Markdown. */
import { readFileSync } from 'node:fs'
import ts from 'typescript'
import { repository } from '../projects/typecheck.js'

/** A word not to use, and what to write instead. */
export interface Word {
  readonly word: RegExp
  readonly instead: string
}

export const words: ReadonlyArray<Word> = [
  { word: /nobody/i, instead: 'anonymous, for the caller without credentials; otherwise "no ..."' },
  { word: /\bmend(?:s|ed|ing)?\b/i, instead: 'fix' },
  { word: /\ba text\b/i, instead: 'a string' },
  { word: /\b(?:tells|told|telling|untold)\b/i, instead: 'is called with, says, reports' },
  { word: /\b(?:stand|stands|stood|standing)\b(?! for\b)/i, instead: 'is, is in, comes' },
  { word: /\b(?:of )?one's own\b/i, instead: 'your own, its own' },
  { word: /\bat once or later\b/i, instead: 'sync or async' },
  { word: /\bof a record it also\b/i, instead: 'given an object, it also' },
  { word: /\bcomes? behind\b/i, instead: 'follows, comes after' },
]

/** One use of such a word. */
export interface Use {
  readonly where: string
  readonly text: string
  readonly instead: string
}

const usesIn = (text: string, where: string): Use[] =>
  words.flatMap(({ word, instead }) => (word.test(text) ? [{ where, text: text.trim().slice(0, 120), instead }] : []))

const lineByLine = (path: string, text: string, first: number): Use[] =>
  text.split('\n').flatMap((line, index) => usesIn(line, `${path}:${first + index}`))

/** The uses in a Markdown file. A word in backticks is quoted, so it is not used. */
export const usesInMarkdown = (path: string): Use[] =>
  lineByLine(path, readFileSync(repository + path, 'utf8').replace(/`[^`\n]*`/g, ''), 1)

// A word in backticks is quoted
const unquoted = (text: string) => text.replace(/`[^`\n]*`/g, '')

// `toldBy` has the words `told` and `by`
const wordsOf = (name: string) => name.replace(/([a-z\d])(?=[A-Z])/g, '$1 ')

/** The uses in the text of a program: in comments, strings, and names that contain such a word. */
export const usesInSource = (source: string, path: string): Use[] => {
  const file = ts.createSourceFile(path, source, ts.ScriptTarget.Latest, true)
  const lineOf = (at: number) => file.getLineAndCharacterOfPosition(at).line + 1
  const found: Use[] = []
  const comments = new Map<number, number>()
  const visit = (node: ts.Node): void => {
    const ranges = [
      ...(ts.getLeadingCommentRanges(source, node.pos) ?? []),
      ...(ts.getTrailingCommentRanges(source, node.end) ?? []),
    ]
    for (const { pos, end } of ranges) comments.set(pos, end)
    if (ts.isIdentifier(node)) {
      found.push(...usesIn(wordsOf(node.text), `${path}:${lineOf(node.getStart(file))}`))
    } else if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node)) {
      found.push(...lineByLine(path, node.text, lineOf(node.getStart(file))))
    } else if (ts.isTemplateMiddleOrTemplateTail(node)) {
      found.push(...lineByLine(path, node.text, lineOf(node.getStart(file))))
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
  for (const [start, end] of comments) {
    found.push(...lineByLine(path, unquoted(source.slice(start, end)), lineOf(start)))
  }
  return found
}

/** The uses in a program. */
export const usesInProgram = (path: string): Use[] => usesInSource(readFileSync(repository + path, 'utf8'), path)
