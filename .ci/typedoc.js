// `npm run docs`: the guides, and an API reference of every entry point from the docstrings, as a website in docs/. Its links
// are relative, so any static host serves it, in any folder.
import { readFileSync } from 'node:fs'
import { contents } from './website.mjs'

const { exports } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
const modules = Object.entries(exports).flatMap(([path, { import: built }]) =>
  built ? [path === '.' ? 'index' : `${path.slice(2)}/index`] : [],
)
const guides = contents()

/** @type {Partial<import('typedoc').TypeDocOptions>} */
export default {
  plugin: ['./website.mjs'],
  entryPoints: modules.map((path) => `../src/${path}.ts`),
  out: '../docs',
  tsconfig: 'tsconfig.build.json',
  name: 'koa-with-auth',
  readme: 'frontPage.md',
  projectDocuments: [
    ...guides.map(({ name }) => `../examples/guides/${name}.md`),
    ...['../README', '../examples/guides/README', '../examples/README', '../examples/create/README'].map(
      (path) => `${path}.md`,
    ),
    ...['../CHANGELOG', '../.github/SECURITY', '../.github/CONTRIBUTING'].map((path) => `${path}.md`),
  ],
  router: 'guides',
  customCss: 'website.css',
  customJs: 'websiteSearch.js',
  favicon: 'website.svg',
  navigation: { includeGroups: true },
  // it links to anchors that it does not have
  includeHierarchySummary: false,
  groupOrder: [...new Set(guides.map(({ group }) => group)), 'Other papers', 'Modules'],
  sort: ['documents-first'],
  sortEntryPoints: false,
  searchInDocuments: true,
  disableSources: true,
  highlightLanguages: [
    'ts',
    'typescript',
    'javascript',
    'json',
    'sh',
    'http',
    'html',
    'yaml',
    'nginx',
    'diff',
    'sql',
    'swift',
    'kotlin',
  ],
  excludePrivate: true,
  validation: { notExported: false, invalidLink: true, notDocumented: false },
}
