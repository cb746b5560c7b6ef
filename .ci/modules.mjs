// Completes the modules that tsc has built. dist/cjs is the only implementation. An entry point of ES modules is a list
// of what the same entry point of CommonJS exports. `node .ci/modules.mjs <folder of the package>`; the default is the
// current folder.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, posix, resolve } from 'node:path'
import ts from 'typescript'

const root = resolve(process.argv[2] ?? '.')
const dist = join(root, 'dist')
const write = (file, text) => {
  mkdirSync(dirname(join(dist, file)), { recursive: true })
  writeFileSync(join(dist, file), text)
}

// A text of the sources as an expression of JavaScript
const textOf = (file) => JSON.stringify(readFileSync(join(import.meta.dirname, '../src', file), 'utf8'))

// The modules whose code differs in CommonJS. A bundler for ES modules has no `__filename`.
const inOtherWords = {
  'openapi/here': `
const { pathToFileURL } = require('node:url')
exports.here = pathToFileURL(typeof __filename === 'string' ? __filename : process.cwd() + '/bundle.js').href`,
  'openapi/pageFiles': `
exports.pageStyle = ${textOf('openapi/assets/page.css')}
exports.pageScript = ${textOf('openapi/assets/page.js')}`,
  'command/importModule': `
exports.importModule = (url) => import(url)`,
  // The router of the ES module, if that was loaded: the application imports the same class
  'koa/newRouter': `
let given
const required = () => {
  const module = require('@koa/router')
  return module.__esModule ? module.default : module
}
exports.give = (Router) => {
  given = Router
}
exports.newRouter = (options = {}) => new (given ??= required())(options)`,
  // The same, because some CommonJS loaders do not require ES modules
  'sign-in/oidc/openidClient': `
let given
exports.give = (module) => {
  given = module
}
exports.openidClient = () => (given ??= require('openid-client'))`,
}

// Entry points that need a package that npm does not install with this one
const optional = {
  'sessions/index': 'koa-session',
  'sqlite/index': '@libsql/client',
  'testing/laws/index': 'fast-check',
  'sign-in/oidc/index': 'openid-client',
  'sign-in/passkeys/index': '@simplewebauthn/server',
}

// What entry points of ES modules import in addition. A static import of an optional package would fail before its check runs. The
// package is used by requests alone, so it is there in time, and if not, `require` says why.
const router = { statement: `import given from '@koa/router'`, to: 'koa/newRouter', gift: 'give(given)' }
const openidClient = { to: 'sign-in/oidc/openidClient', gift: `import('openid-client').then(give, () => {})` }
const brought = { index: router, 'openapi/index': router, 'sign-in/oidc/index': openidClient }

const entry = (name, exported) => {
  const from = (module) => {
    const path = posix.relative(posix.dirname(name), `cjs/${module}.js`)
    return path.startsWith('.') ? path : `./${path}`
  }
  const { statement, to, gift } = brought[name] ?? {}
  const bring = to && [...(statement ? [statement] : []), `import { give } from '${from(to)}'`, gift]
  const check = name in optional ? [`import './${posix.basename(name)}.needs.js'`] : []
  return [
    ...check,
    ...(bring ?? []),
    'export {',
    ...exported.map((one) => `  ${one},`),
    `} from '${from(name)}'`,
    '',
  ].join('\n')
}

// Says what to install. An ES module throws it: if CommonJS that an ES module imports throws, Node 20 ends the process at
// the next import, even if the error was caught.
const check = (name, entry, needed) => {
  const inNode = needed === '@libsql/client' ? `process.getBuiltinModule('node:sqlite') ?? ` : ''
  // some loaders of CommonJS do not require ES modules: the package is there
  const otherwise = needed === 'openid-client' ? 'return' : 'throw cause'
  write(
    `cjs/${name}.needs.js`,
    `'use strict'
const refuse = (cause) => {
  if (!/^(?:ERR_)?MODULE_NOT_FOUND$/.test(cause.code) || !cause.message.includes("'${needed}'")) ${otherwise}
  throw Object.assign(new Error('${entry} needs ${needed}: npm install ${needed}', { cause }), { code: cause.code })
}
exports.refuse = refuse
exports.check = () => {
  try {
    ${inNode}require('${needed}')
  } catch (cause) {
    refuse(cause)
  }
}
`,
  )
  const needs = posix.relative(posix.dirname(name), `cjs/${name}.needs.js`)
  write(`${name}.needs.js`, `import { check } from '${needs}'\ncheck()\n`)
  const own = join(dist, `cjs/${name}.js`)
  const text = readFileSync(own, 'utf8')
  const call = `require('./${posix.basename(name)}.needs.js').check()`
  if (!text.includes(call)) writeFileSync(own, text.replace(/^"use strict";\n/, `"use strict";\n${call};\n`))
}

// tsc first exports everything as undefined, for modules that import each other. None do here, and V8 calls an export that is
// written once as if it were in the same file. Its helpers are for modules without `__esModule`; those of fp-ts, of io-ts and
// of this package have it
const helpers = /^var __(?:createBinding|setModuleDefault|importStar) = [^]*?^\}\)+(?:\(\))?;\n/gm
const written = (given) => {
  const text = given
    .replace(/^(?:exports\.\w+ = )+void 0;\n/gm, '')
    .replace(/__importStar\((require\("(?:\.|fp-ts|io-ts)[^"]*"\))\)/g, '$1')
  return text.includes('__importStar(') ? text : text.replace(helpers, '')
}
// The blanks before a line are a twentieth of the packed JavaScript. What is in a template stays
const unindented = (text) => {
  const source = ts.createSourceFile('module.js', text, ts.ScriptTarget.Latest)
  const templates = []
  const walk = (node) => {
    if (ts.isTemplateLiteralToken(node)) templates.push([node.getStart(source), node.end])
    ts.forEachChild(node, walk)
  }
  if (text.includes('`')) walk(source)
  const isTemplate = (at) => templates.some(([from, to]) => from < at && at < to)
  return text.replace(/^ +/gm, (blanks, at) => (isTemplate(at) ? blanks : ''))
}
for (const file of readdirSync(join(dist, 'cjs'), { recursive: true })) {
  if (!file.endsWith('.js')) continue
  const text = readFileSync(join(dist, 'cjs', file), 'utf8')
  write(join('cjs', file), unindented(written(text)))
}
write('cjs/package.json', '{ "type": "commonjs" }\n')
for (const [module, text] of Object.entries(inOtherWords)) write(`cjs/${module}.js`, `'use strict'${text}\n`)
const require = createRequire(join(root, 'package.json'))
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
for (const [path, built] of Object.entries(exports)) {
  if (typeof built === 'string') continue
  const name = built.import.default.replace(/^\.\/dist\/|\.js$/g, '')
  if (name in optional) check(name, `koa-with-auth${path.slice(1)}`, optional[name])
  const exported = Object.keys(require(join(root, built.require.default)))
  write(`${name}.js`, entry(name, exported))
}
