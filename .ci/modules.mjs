// Completes the modules that tsc has built. dist/cjs is the only implementation. An entry point of ES modules is a list
// of what the same entry point of CommonJS exports. `node .ci/modules.mjs <folder of the package>`; the default is the
// current folder.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, posix, resolve } from 'node:path'

const root = resolve(process.argv[2] ?? '.')
const dist = join(root, 'dist')
const write = (file, text) => {
  mkdirSync(dirname(join(dist, file)), { recursive: true })
  writeFileSync(join(dist, file), text)
}

// The modules whose code differs in CommonJS. A bundler for ES modules has no `__filename`.
const inOtherWords = {
  'openapi/here': `
const { pathToFileURL } = require('node:url')
exports.here = pathToFileURL(typeof __filename === 'string' ? __filename : process.cwd() + '/bundle.js').href`,
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
  // The same for jose, because some CommonJS loaders do not require ES modules
  'jwt/jose': `
let given
exports.give = (module) => {
  given = module
}
exports.jose = () => (given ??= require('jose'))`,
}

// What entry points of ES modules import in addition
const router = { statement: `import given from '@koa/router'`, to: 'koa/newRouter' }
const jose = { statement: `import * as given from 'jose'`, to: 'jwt/jose' }
const brought = { index: router, 'openapi/index': router, 'jwt/index': jose }

const entry = (name, exported) => {
  const from = (module) => {
    const path = posix.relative(posix.dirname(name), `cjs/${module}.js`)
    return path.startsWith('.') ? path : `./${path}`
  }
  const { statement, to } = brought[name] ?? {}
  const bring = statement && [statement, `import { give } from '${from(to)}'`, 'give(given)']
  return [...(bring ?? []), 'export {', ...exported.map((one) => `  ${one},`), `} from '${from(name)}'`, ''].join('\n')
}

write('cjs/package.json', '{ "type": "commonjs" }\n')
for (const [module, text] of Object.entries(inOtherWords)) write(`cjs/${module}.js`, `'use strict'${text}\n`)
const require = createRequire(join(root, 'package.json'))
const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
for (const built of Object.values(exports)) {
  if (typeof built === 'string') continue
  const name = built.import.default.replace(/^\.\/dist\/|\.js$/g, '')
  write(`${name}.js`, entry(name, Object.keys(require(join(root, built.require.default)))))
}
