/**
 * A plugin of typedoc: the guides as a website, with the order and the groups of examples/guides/README.md. A page has
 * its heading as its title, once, and links to the previous and the next page. The words of examples/guides/words.md
 * find the guides that their row links to (websiteSearch.js).
 */
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { basename, join, posix } from 'node:path'
import { Converter, IndexEvent, JSX, KindRouter, ReflectionKind, RendererEvent } from 'typedoc'

const guides = 'examples/guides'
const read = (path) => readFileSync(path, 'utf8')
const linked = (text) => [...text.matchAll(/\]\(([\w-]+)\.md/g)].map(([, name]) => name)

/** The guides by name, with their group, in order. */
export const contents = () =>
  read(`${guides}/README.md`)
    .split(/^## /m)
    .slice(1)
    .flatMap((section) => linked(section).map((name) => ({ name, group: section.slice(0, section.indexOf('\n')) })))

const { name: library, exports } = JSON.parse(read('package.json'))
// What users import, by the name of the module
const entries = new Map(
  Object.entries(exports).flatMap(([entry, { import: built }]) =>
    built ? [[built.default.replace(/^\.\/dist\/|(?:\/index)?\.js$/g, ''), library + entry.slice(1)]] : [],
  ),
)

// The rows of words.md: what people call it, and where it is. A row that says what to use instead is found in the table itself
const synonyms = () =>
  read(`${guides}/words.md`)
    .split('\n')
    .map((line) => line.split('|'))
    .filter((cells) => cells.length === 4 && !/^[-\s]*$/.test(cells[1]))
    .slice(1)
    .map(([, words, answer]) => ({
      words: plain(words).split(/\s*[,;]\s*/),
      text: plain(answer),
      to: answer.includes('Not here')
        ? [{ page: 'words' }]
        : [...answer.matchAll(/\]\(([\w-]+)\.md(?:#([^)]+))?\)/g)].map(([, page, anchor]) => ({ page, anchor })),
    }))

// Code is a part of its own, also in a heading
const headingsOf = (parts) => {
  const text = parts.map((part) => part.text).join('')
  const prose = text.replace(/^```[\s\S]*?^```$/gm, '')
  return [...prose.matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading.replace(/[`[]|\]\([^)]*\)/g, ''))
}

// The text of a page by its headings, as the search shows it. Without what is only markup
const plain = (markdown) =>
  markdown
    .replace(/^\s*\|?[-| :]+\|?$/gm, '')
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/^\s*(?:[-*>]|\d+\.)\s+/gm, '')
    .replace(/[`|]|\*\*/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()

const sectionsOf = (parts) => {
  const sections = []
  let isCode = false
  for (const line of parts
    .flatMap((part) => part.text)
    .join('')
    .split('\n')) {
    if (line.startsWith('```')) isCode = !isCode
    else if (!isCode && /^#+ /.test(line)) sections.push({ text: [], code: [] })
    else sections.at(-1)?.[isCode ? 'code' : 'text'].push(line)
  }
  const short = (code) =>
    code
      .filter((line) => !line.startsWith('import '))
      .join(' ')
      .replace(/\s+/g, ' ')
  return sections.map(({ text, code }) => ({ text: plain(text.join('\n')), code: short(code) }))
}

const anchorOf = (heading) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-')

const programs = /\.(?:ts|mjs|lock|json|md)$/

export const load = (app) => {
  const order = contents()
  const nameOf = new Map()
  const passages = {}
  const searched = []
  // by page: the anchor of a heading as Markdown files write it, and as it is here, without what is code
  const anchors = {}

  app.converter.on(Converter.EVENT_CREATE_DOCUMENT, (_context, document) => {
    // examples/guides/levels, examples/README
    const name = document.name.replace(/\/README$/, '').replace(/^.*\//, '')
    nameOf.set(document, name)
    document.name = headingsOf(document.content)[0] ?? name
    document.relevanceBoost = 20
    document.frontmatter.group = order.find((guide) => guide.name === name)?.group ?? 'Other papers'
  })
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const module of project.children ?? []) {
      if (module.kind === ReflectionKind.Module) module.name = entries.get(module.name) ?? module.name
    }
    // The page already has a title
    const [first] = project.readme ?? []
    if (first !== undefined) first.text = first.text.replace(/^# .+\n+/, '')
  })

  // The address of a guide is its file name
  app.renderer.defineRouter(
    'guides',
    class extends KindRouter {
      getIdealBaseName(reflection) {
        const name = nameOf.get(reflection)
        return name === undefined ? super.getIdealBaseName(reflection) : `guides/${name}`
      }
    },
  )

  app.renderer.on(IndexEvent.PREPARE_INDEX, (event) => {
    for (const found of event.searchResults) {
      const url = app.renderer.router.getFullUrl(found)
      const guide = nameOf.get(found)
      const parent =
        guide || found.parent?.isProject() || found.parent?.kindOf(ReflectionKind.Module)
          ? ''
          : `${found.parent?.name}.`
      searched.push({ url, name: parent + found.name, kind: found.kind, guide })
      // of an exported name, the first line of its docstring
      const { summary } = (found.signatures?.[0] ?? found).comment ?? {}
      const text = summary && plain(summary.map((part) => part.text).join(''))
      if (guide === undefined && text) passages[url] = [{ text }]
    }
    // websiteSearch.js searches instead of typedoc
    event.searchResults = []
    event.searchFields = []
  })

  // The list of headings leaves out what is code in them
  app.renderer.hooks.on('pageSidebar.begin', ({ page }) => {
    const parts = page.url === 'index.html' ? page.project.readme : nameOf.has(page.model) && page.model.content
    const headings = parts ? headingsOf(parts) : []
    const listed = page.pageSections.flatMap((section) => section.headings)
    if (headings.length === listed.length) {
      listed.forEach((one, index) => (one.text = headings[index]))
      anchors[page.url] = Object.fromEntries(
        listed
          .map(({ link }, index) => [anchorOf(headings[index]), link.slice(1)])
          .filter(([one, other]) => one !== other),
      )
      const sections = parts ? sectionsOf(parts) : []
      const found = sections.map((section, index) => ({
        anchor: listed[index]?.link.slice(1),
        heading: headings[index],
        ...section,
      }))
      if (found.length > 0) passages[page.url] = found.filter(({ text, code }) => text + code !== '')
    }
    return JSX.createElement(JSX.Fragment, null)
  })

  app.renderer.hooks.on('content.end', (context) => {
    const pages = order.flatMap(({ name }) => [...nameOf].find(([, other]) => other === name)?.[0] ?? [])
    const at = pages.indexOf(context.page.model)
    const isStart = context.page.url === 'index.html'
    if (at < 0 && !isStart) return JSX.createElement(JSX.Fragment, null)
    const link = (to, rel, label) =>
      to && JSX.createElement('a', { href: context.urlTo(to), rel }, JSX.createElement('small', null, label), to.name)
    return JSX.createElement(
      'nav',
      { class: 'neighbors', 'aria-label': 'Previous and next page' },
      isStart ? undefined : link(pages[at - 1] ?? context.page.project, 'prev', 'Previous'),
      link(pages[isStart ? 0 : at + 1], 'next', 'Next'),
    )
  })

  // Programs that guides link to: hosts serve .ts as a video, and .txt as a page
  app.renderer.on(RendererEvent.END, ({ outputDirectory }) => {
    const pages = searched.map((page) => ({ ...page, passages: passages[page.url] ?? [] }))
    const found = `window.passages = ${JSON.stringify({ pages, synonyms: synonyms() })}`
    writeFileSync(join(outputDirectory, 'assets', 'passages.js'), found)
    const files = readdirSync(outputDirectory, { recursive: true }).map((path) => join(outputDirectory, path))
    const media = files.filter((path) => basename(join(path, '..')) === 'media' && programs.test(path))
    for (const path of media) renameSync(path, `${path}.txt`)
    const links = new RegExp(`(href="[^"]*media/(?:${media.map((path) => basename(path)).join('|')}))(?=["#])`, 'g')
    for (const path of files.filter((path) => path.endsWith('.html'))) {
      const page = path.slice(outputDirectory.length + 1)
      const html = read(path).replace(/(?<=href=")((?!https?:)[^"#]*)#([^"]+)/g, (link, to, anchor) => {
        const own = anchors[to === '' ? page : posix.join(page, '..', to)]?.[anchor]
        return own === undefined ? link : `${to}#${own}`
      })
      writeFileSync(path, media.length === 0 ? html : html.replace(links, '$1.txt'))
    }
  })
}
