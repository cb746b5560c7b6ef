// `npm run docs`: an API reference of every entry point, from the docstrings, in docs/
import { readFileSync } from 'node:fs'

const { exports } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'))
const built = Object.values(exports).flatMap((entry) => entry.import?.default ?? entry.default ?? [])

/** @type {Partial<import('typedoc').TypeDocOptions>} */
export default {
  entryPoints: built.map((path) => path.replace('./dist/', 'src/').replace(/\.js$/, '.ts')),
  out: 'docs',
  tsconfig: 'tsconfig.build.json',
  name: 'koa-with-auth',
  readme: 'README.md',
  projectDocuments: ['examples/guides/*.md'],
  disableSources: true,
  highlightLanguages: ['ts', 'typescript', 'javascript', 'json', 'sh', 'http', 'html'],
  excludePrivate: true,
  validation: { notExported: false, invalidLink: true, notDocumented: false },
}
