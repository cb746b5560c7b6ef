/** The Markdown files of the repository, their links and their headings. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { posix } from 'node:path'
import { repository } from '../projects/typecheck.js'

const markdownIn = (folder: string, recursive: boolean): string[] =>
  existsSync(repository + folder)
    ? readdirSync(repository + folder, { recursive, encoding: 'utf8' })
        .filter((path) => path.endsWith('.md') && !path.includes('node_modules'))
        .map((path) => posix.join(folder, path))
    : []

/** Every Markdown file that belongs to the repository. */
export const papers = (): string[] =>
  [
    ...markdownIn('.', false),
    ...['.github', 'examples', 'src', 'spec'].flatMap((folder) => markdownIn(folder, true)),
  ].sort()

const prose = (path: string) =>
  readFileSync(repository + path, 'utf8')
    .replace(/^```[\s\S]*?^```$/gm, '')
    .replace(/`[^`\n]*`/g, 'code')

/** The links to another file, or to a heading, that do not leave the repository. */
export const linksOf = (paper: string) =>
  [...prose(paper).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => ({ paper, target }))
    .filter(({ target }) => !/^[a-z]+:/.test(target))

// As GitHub makes anchors of headings
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(' ', '-')

const anchorsOf = (path: string): string[] =>
  [
    ...readFileSync(repository + path, 'utf8')
      .replace(/^```[\s\S]*?^```$/gm, '')
      .matchAll(/^#+ (.+)$/gm),
  ].map(([, heading = '']) => anchorOf(heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')))

/** Why a link leads nowhere; undefined if it leads somewhere. */
export const brokenLink = ({ paper, target }: ReturnType<typeof linksOf>[number]): string | undefined => {
  const [file = '', anchor] = target.split('#')
  const path = file === '' ? paper : posix.join(posix.dirname(paper), decodeURIComponent(file))
  if (path.startsWith('..')) return `${paper} links out of the repository: ${target}`
  if (!existsSync(repository + path)) return `${paper} links to ${target}, which does not exist`
  if (anchor === undefined) return undefined
  // A line of a source: `guard.ts#L20`
  const line = /^L(\d+)$/.exec(anchor)?.[1]
  if (line !== undefined) {
    const { length } = readFileSync(repository + path, 'utf8').split('\n')
    return +line <= length ? undefined : `${paper} links to ${target}, behind the end of the file`
  }
  const page = statSync(repository + path).isDirectory() ? `${path}/README.md` : path
  return anchorsOf(page).includes(anchor) ? undefined : `${paper} links to ${target}, which has no such heading`
}
