// Bundles the sources into ES modules (dist) and CommonJS (dist/cjs), with shared chunks. Rolldown makes the ES modules. A
// chunk of CommonJS differs from its ES module in imports and exports alone, so both together compress to little more than one.
// `node .ci/bundle.mjs <folder of the package>`; the default is this repository.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, posix, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { minifySync, Visitor } from 'rolldown/utils'
import { applied, parsed, withSharedNames } from './names.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const require = createRequire(join(root, 'package.json'))
const { exports, bin, peerDependenciesMeta } = require('./package.json')

/** The entry points: what users import, the file in `dist` without an ending, and the module. */
export const entries = Object.entries(exports).flatMap(([path, built]) => {
  if (typeof built === 'string') return []
  const file = path.slice(2) || 'index'
  return [{ name: `koa-with-auth${path.slice(1)}`, file, module: file === 'index' ? file : `${file}/index` }]
})

// -------------------------------------------------------------------------------------
// packages that npm does not install with this one
// -------------------------------------------------------------------------------------

const packageOf = (specifier) => /^(?:@[^/]+\/)?[^/]+/.exec(specifier)[0]
const isOptional = (specifier) => peerDependenciesMeta[packageOf(specifier)]?.optional === true
const fileOf = (specifier) => `peers/${specifier.replace(/^@/, '').replaceAll('/', '-')}.cjs`

// Bundlers take a `require` in a `try` as one that may fail, and put what they find into their bundle. What CommonJS throws
// while an ES module imports it ends the process of Node 20 at the next import, so the ES module throws. Jest links an ES module
// with the names that CommonJS has when it has run, so each name is there from the beginning.
const attempt = (specifier) =>
  atFirstUse.includes(specifier)
    ? `'use strict'
exports.cause = undefined
exports.load = () => {
  try { return require('${specifier}') } catch (cause) { throw cause }
}
try { process.getBuiltinModule('module').createRequire(__filename).resolve('${specifier}') } catch {
  try { exports.load() } catch (cause) { exports.cause = cause }
}
`
    : `'use strict'
exports.found = exports.cause = undefined
try { exports.found = require('${specifier}') } catch (cause) { exports.cause = cause }
`

// Those whose default export is a function: it is asked at once whether they are there, and they are loaded when it is called
const atFirstUse = ['koa-session']

// What an import of such a package becomes. `names` is empty if the sources use `import()`, because it has no CommonJS: some
// loaders cannot require it, and it is there.
const imported = (entry, specifier, names) => {
  const name = packageOf(specifier)
  const code = `/^(?:ERR_)?MODULE_NOT_FOUND$/.test(cause.code)`
  return `
    import { ${atFirstUse.includes(specifier) ? 'load' : 'found'}, cause } from '${fileOf(specifier)}'
    if (cause) {
      if (!cause.code || (${code} && cause.message.includes("'${name}")))
        throw Object.assign(new Error('${entry} needs ${name}: npm install ${name}', { cause }), { code: cause.code })
      ${names.length > 0 ? 'throw cause' : ''}
    }
    ${names
      .map((one) =>
        one === 'default'
          ? `export default ${atFirstUse.includes(specifier) ? '(...given) => (load().default ?? load())(...given)' : 'found.__esModule ? found.default : found'}`
          : `export const ${one} = found.${one}`,
      )
      .join('\n')}`
}
// What the sources load by `import()`, and the entry point that needs it at once
const atOnce = { 'openid-client': 'sign-in/oidc/index' }

const peers = (needed) => ({
  name: 'peers',
  resolveId(specifier, importer, { kind }) {
    if (specifier.startsWith('peers/')) return { id: specifier, external: true }
    // what is used of them is in the package: loading all of them took longer than everything else
    if (/^fp-ts\/lib\//.test(specifier)) return require.resolve(specifier).replace('/lib/', '/es6/')
    if (specifier === 'io-ts') return require.resolve('io-ts').replace('/lib/', '/es6/')
    if (specifier.startsWith('fp-ts/es6/')) return require.resolve(`${specifier}.js`)
    if (!/^[^./\0]/.test(specifier) || !isOptional(specifier)) return undefined
    if (kind !== 'import-statement') return { id: specifier, external: true }
    return { id: `\0${specifier}?${posix.relative(root, importer)}`, moduleSideEffects: true }
  },
  load(id) {
    if (!id.startsWith('\0')) return undefined
    const [specifier, importer] = id.slice(1).split('?')
    needed.add(specifier)
    // the entry point of the same room
    const entry = entries.findLast(({ module }) => posix.dirname(importer) === posix.dirname(`src/${module}`)).name
    const names =
      specifier in atOnce ? [] : Object.keys(require(specifier)).filter((name) => /^(?!default$)\w+$/.test(name))
    const all = names.length > 0 ? [...names, 'default'] : []
    return imported(entry, specifier, atFirstUse.includes(specifier) ? ['default'] : all)
  },
  // the text of files, such as those of the page, and what is needed at once
  transform(code, id) {
    if (/node_modules.(?:fp|io)-ts/.test(id)) return annotated(id, code)
    const module = posix.relative(join(root, 'src'), id).replace(/\.ts$/, '')
    const needs = Object.keys(atOnce).filter((name) => atOnce[name] === module)
    const text = code.replace(
      /\breadFileSync\(new URL\('([\w./]+)', import\.meta\.url\), 'utf8'\)/g,
      (_found, file) => {
        const content = readFileSync(join(dirname(id), file), 'utf8')
        // blanks and lines that only align a table
        return JSON.stringify(file.endsWith('.md') ? content.replace(/ {2,}|-{4,}/g, ' ') : content)
      },
    )
    return needs.map((name) => `import '${name}'\n`).join('') + text
  },
})

// -------------------------------------------------------------------------------------
// what a bundler may leave out
// -------------------------------------------------------------------------------------

const isPlain = (node) =>
  node === null ||
  /^(?:ArrowFunctionExpression|FunctionExpression|ClassExpression|Literal|Identifier)$/.test(node.type) ||
  (node.type === 'UnaryExpression' && isPlain(node.argument)) ||
  (node.type === 'TemplateLiteral' && node.expressions.length === 0) ||
  (node.type === 'ArrayExpression' && node.elements.every(isPlain)) ||
  (node.type === 'ObjectExpression' &&
    node.properties.every((one) => one.type === 'Property' && !one.computed && isPlain(one.value)))

// Where a value is made, a bundler sees that nothing else is. A function that is called once would be inlined
const [MAKE, END] = ['/* @__PURE__ */ $made(() => (', '))']
const made = '\nfunction $made(make) { return make() }\n'
const pure = (text) => MAKE + text + END

// An import of a module of Node reads all of its exports, and some of them load much
const builtin = ({ source, specifiers }) => {
  const module = `process.getBuiltinModule(${source.raw})`
  return specifiers
    .map(
      ({ type, local, imported }) =>
        `const ${local.name} = ${pure(type === 'ImportSpecifier' ? `${module}.${imported.name}` : module)};`,
    )
    .join('')
}

// The functions that a statement such as `declareFactories({ map, flatMap })` marks, each with the text of its name
const markedBy = ({ type, expression }, code) => {
  if (type !== 'ExpressionStatement' || expression.type !== 'CallExpression') return undefined
  const [first, second] = expression.arguments
  if (/^declareFactory\b/.test(expression.callee.name)) return [[second.name, code.slice(first.start, first.end)]]
  if (!/^declareFactories\b/.test(expression.callee.name)) return undefined
  return first.properties.map(({ key, value }) => [value.name, JSON.stringify(key.name)])
}

// Bundlers keep a class that has a computed name
const isComputed = (node) => /^Class/.test(node?.type) && node.body.body.some(({ computed }) => computed)

// A factory is marked where it is made, not by a statement of its own
const shakeable = (name, code) => {
  const program = parsed(name, code)
  const body = program.body.map((one) => one.declaration ?? one)
  const locals = body.flatMap(
    (one) => one.declarations?.map(({ id }) => id) ?? one.specifiers?.map(({ local }) => local) ?? [],
  )
  const mark = locals.find((one) => /^declareFactory\b/.test(one.name))?.name
  const marks = new Map(body.flatMap((one) => markedBy(one, code) ?? []))
  if (marks.size > 0 && mark === undefined)
    throw new Error(`${name}: a chunk of its own calls declareFactory once for each`)
  const changes = []
  // what is done to the prototype of a class belongs to it
  const ofClass = (one) =>
    /^(?:Object\.(?:setPrototypeOf|defineProperty)\()?([\w$]+)\.prototype\b/.exec(code.slice(one.start, one.end))?.[1]
  const after = (name) =>
    body.filter((one) => one.type === 'ExpressionStatement' && name !== undefined && ofClass(one) === name)
  const around = ({ start, end }, before, behind) =>
    changes.push({ start, end: start, text: before }, { start: end, end, text: behind })
  for (const one of body) {
    if (markedBy(one, code) !== undefined) changes.push({ start: one.start, end: one.end, text: '' })
    if (one.type === 'ImportDeclaration' && one.source.value.startsWith('node:')) {
      changes.push({ start: one.start, end: one.end, text: builtin(one) })
    }
    // what is done to it, as text behind it
    const moved = (name) =>
      after(name)
        .map(({ start, end }) => {
          changes.push({ start, end, text: '' })
          return `;${code.slice(start, end)}`
        })
        .join('')
    if (one.type === 'ClassDeclaration') {
      const name = one.id.name
      const more = moved(name)
      if (more !== '' || isComputed(one))
        around(one, `const ${name} = /* @__PURE__ */ $made(() => { `, `${more};return ${name} });`)
    }
    const declarations = one.type === 'FunctionDeclaration' ? [{ id: one.id, init: one }] : (one.declarations ?? [])
    for (const { id, init } of declarations) {
      const label = marks.get(id.name)
      marks.delete(id.name)
      const declared = init === one ? `const ${id.name} = ` : ''
      if (label !== undefined) around(init, `${declared}/* @__PURE__ */ ${mark}(${label}, `, init === one ? ');' : ')')
      else if (init !== one && (after(id.name).length > 0 || isComputed(init)))
        around(init, `/* @__PURE__ */ $made(() => { const ${id.name} = `, `${moved(id.name)};return ${id.name} })`)
      else if (init !== one && !isPlain(init)) around(init, MAKE, END)
    }
  }
  if (marks.size > 0) throw new Error(`${name}: ${[...marks.keys()]} is marked elsewhere than where it is made`)
  return applied(code, changes) + made
}

// -------------------------------------------------------------------------------------
// an ES module as CommonJS
// -------------------------------------------------------------------------------------

const requireOf = ({ source, specifiers }) => {
  const call = `require(${source.raw})`
  if (specifiers.length === 0) return call
  const kinds = specifiers.map((one) => {
    if (one.type === 'ImportNamespaceSpecifier') return `const ${one.local.name}=${call}`
    const name = one.type === 'ImportDefaultSpecifier' ? 'default' : (one.imported.name ?? one.imported.value)
    return [name, one.local.name]
  })
  const named = kinds.filter((one) => typeof one !== 'string')
  if (named.length === 0) return kinds.join(';')
  const pattern = named.map(([name, local]) => (name === local ? name : `${name}:${local}`)).join(',')
  const hasDefault = named.some(([name]) => name === 'default')
  return `const{${pattern}}=${hasDefault ? `(e=>e.__esModule?e:{...e,default:e})(${call})` : call}`
}

// Packages with native code are in no bundle. webpack and Turbopack take an `import()` that they do not find as an error, without this
const outside = (code) => code.replace(/\bimport\((?=[`"']@node-rs\/)/g, 'import(/*webpackIgnore:true*/')

// A literal `import()` is of an optional package, or of a chunk. Some loaders of CommonJS have no `import()`, and some
// do not require ES modules
const laterOf = (source) =>
  outside(`(()=>{try{return Promise.resolve(require(${source}))}catch{return import(${source})}})()`)

const HERE = `(typeof __filename=="string"?require("node:url").pathToFileURL(__filename).href:"file:///bundle.js")`

const asCommonJs = (name, code, isKept) => {
  const program = parsed(name, code)
  const changes = []
  const replace = ({ start, end }, text) => changes.push({ start, end, text })
  const exported = []
  for (const one of program.body) {
    if (one.type === 'ImportDeclaration') replace(one, `${requireOf(one)};`)
    else if (one.type === 'ExportNamedDeclaration' && one.declaration === null) {
      const from = one.source === null ? '' : `require(${one.source.raw}).`
      exported.push(...one.specifiers.map((each) => [each.exported.name, from + each.local.name]))
      replace(one, '')
    } else if (/^Export/.test(one.type)) throw new Error(`${name}: an export of a kind that is not known`)
  }
  new Visitor({
    ImportExpression: (one) => {
      if (one.source.type === 'Literal') replace(one, laterOf(one.source.raw))
    },
    MetaProperty: (one) => replace(one, '{url:' + HERE + '}'),
  }).visit(program)
  const text = applied(code, changes)
  // what reads CommonJS for the names that it exports knows the first of these forms
  const given = isKept
    ? exported.map(([name, value]) => `exports.${name}=${value};`).join('')
    : `Object.assign(exports,{${exported.map(([name, value]) => (name === value ? name : `${name}:${value}`)).join(',')}});`
  return `"use strict";Object.defineProperty(exports,"__esModule",{value:true});${text}${given}\n`
}

// -------------------------------------------------------------------------------------

const inputs = () => {
  const programs = Object.values(bin).map((path) => path.replace(/^dist\/|\.js$/g, ''))
  const all = [
    ...entries.map(({ file, module }) => [file, module]),
    ...programs.map((one) => [one, one]),
    // an entry point of over 32 kB would be compressed twice, because gzip looks no further back
    ['chunks/authenticator', 'testing/laws/authenticator'],
    ['chunks/upstream', 'sign-in/oidc/upstream'],
  ]
  return Object.fromEntries(all.map(([file, module]) => [file, join(root, `src/${module}.ts`)]))
}

// Chunks that need each other would see each other unfinished
const checkCycles = (file, output, above = []) => {
  if (above.includes(file)) throw new Error(`chunks import each other: ${[...above, file].join(', ')}`)
  for (const one of output.find(({ fileName }) => fileName === file)?.imports ?? [])
    checkCycles(one, output, [...above, file])
}

// -------------------------------------------------------------------------------------
// what the root needs
// -------------------------------------------------------------------------------------

// Node takes a millisecond for each file, and gzip looks 32 kB back: so a few chunks of less. A module needs only
// those before it in this order, so no chunk needs a later one
const PARTS = 8
const partsOfRoot = (order) => {
  const size = order.reduce((sum, { code }) => sum + code.length, 0) / PARTS
  let before = 0
  return new Map(
    order.map(({ id, code }) => {
      const part = Math.floor(before / size)
      before += code.length
      return [id, `root${part + 1}`]
    }),
  )
}
const orderFrom = (info, id, seen = new Set()) => {
  if (seen.has(id)) return []
  seen.add(id)
  const { importedIds, code } = info(id)
  return [
    ...importedIds.flatMap((one) => orderFrom(info, one, seen)),
    ...(code == null ? [] : [{ id, code: code.replace(/\/\*[^]*?\*\/|^ *\/\/.*\n|^ +/gm, '') }]),
  ]
}

// The calls that are done when an expression is evaluated, which are not those inside of functions
const callsIn = (node) => {
  if (Array.isArray(node)) return node.flatMap(callsIn)
  if (typeof node?.type !== 'string' || /Function/.test(node.type) || /^Class/.test(node.type)) return []
  const inner = Object.values(node).flatMap((one) => (typeof one === 'object' ? callsIn(one) : []))
  return /^(?:Call|New)Expression$/.test(node.type) ? [node, ...inner] : inner
}

// The minifier leaves such comments out. Each value is made by a call, see `shakeable`
const annotated = (name, code) => {
  const calls = parsed(name, code).body.flatMap((one) =>
    ((one.declaration ?? one).declarations ?? []).flatMap(({ init }) => callsIn(init)),
  )
  const starts = [...new Set(calls.map(({ start }) => start))]
  return applied(
    code,
    starts.map((start) => ({ start, end: start, text: '/*#__PURE__*/' })),
  )
}

// Node shows the line that threw. A chunk in one line would push the message off the screen, and a stack would not say where
const inLines = (name, code) => {
  const starts = []
  const program = parsed(name, code)
  for (const one of program.body) {
    starts.push(one.start)
    for (const { start } of (one.declaration ?? one).declarations?.slice(1) ?? []) starts.push(start)
  }
  new Visitor({
    ThrowStatement: ({ start, end }) => starts.push(start, end),
    ClassBody: ({ body }) => starts.push(...body.map(({ start }) => start)),
  }).visit(program)
  return applied(
    code,
    [...new Set(starts)].filter((at) => at > 0).map((at) => ({ start: at, end: at, text: '\n' })),
  )
}

// Rolldown reads inherited names, too: a property that a merge put on all objects would end the import
const withOwnNames = (name, code) => {
  if (!name.includes('rolldown-runtime')) return code
  const own = code.replace(/for \(var (\w+) in (\w+)\)/g, 'for (var $1 of Object.keys($2))')
  if (own === code) throw new Error(`${name}: no loop over names`)
  return own
}

const minifying = {
  module: true,
  compress: true,
  mangle: { toplevel: true, keepNames: { class: true, function: false } },
}

/** Writes the modules into `dist` of a folder. */
export const bundle = async (folder) => {
  const needed = new Set()
  let parts = new Map()
  const build = await rolldown({
    input: inputs(),
    cwd: root,
    platform: 'node',
    external: (id) => /^[^./\0]/.test(id) && !isOptional(id) && !/^(?:fp-ts|io-ts)(?:\/|$)/.test(id),
    plugins: [
      peers(needed),
      {
        name: 'order',
        buildEnd() {
          parts = partsOfRoot(orderFrom((id) => this.getModuleInfo(id), join(root, 'src/index.ts')))
          parts.delete(join(root, 'src/index.ts'))
          // it does something when it is loaded, so a bundle has all of its chunk: only the entry points import it
          parts.set(join(root, 'src/koa/development.ts'), `root${PARTS}`)
        },
      },
    ],
    preserveEntrySignatures: 'allow-extension',
    tsconfig: false,
    treeshake: {
      moduleSideEffects: (id) => id.includes('\0') || /development|command.main/.test(id),
      propertyReadSideEffects: false,
    },
    onwarn: (warning) => {
      // how long plugins take, which is long on a busy machine
      if (warning.code !== 'PLUGIN_TIMINGS') throw new Error(warning.message)
    },
  })
  const { output } = await build.generate({
    format: 'esm',
    comments: { legal: false, annotation: true, jsdoc: false },
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/[name].js',
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [{ debugName: 'root', name: (id) => parts.get(id) ?? null }],
    },
  })
  await build.close()
  for (const { fileName } of output) checkCycles(fileName, output)
  const write = (file, text) => {
    mkdirSync(dirname(join(folder, 'dist', file)), { recursive: true })
    // npx runs a program of the clone as it is
    writeFileSync(join(folder, 'dist', file), text, {
      mode: Object.values(bin).includes(`dist/${file}`) ? 0o755 : 0o644,
    })
  }
  const chunks = output.map(({ fileName, code }) => {
    const minified = minifySync(fileName, shakeable(fileName, withOwnNames(fileName, code)), minifying)
    if (minified.errors.length > 0) throw new Error(minified.errors[0].message)
    return { fileName, code: minified.code }
  })
  const isKept = (file) =>
    output.some((one) => (one.fileName === file && one.isEntry) || one.dynamicImports.includes(file))
  for (const [fileName, named] of withSharedNames(chunks, isKept)) {
    // a text of other characters takes V8 twice as long
    const ascii = named.replace(/[^\0-\x7f]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`)
    const code = outside(inLines(fileName, annotated(fileName, ascii))).replaceAll(
      '"peers/',
      `"${posix.relative(posix.dirname(fileName), '').replace(/^$/, '.')}/peers/`,
    )
    write(fileName, code)
    if (!Object.values(bin).includes(`dist/${fileName}`)) {
      write(`cjs/${fileName}`, asCommonJs(fileName, code, isKept(fileName)))
    }
  }
  for (const specifier of needed) for (const at of ['', 'cjs/']) write(at + fileOf(specifier), attempt(specifier))
  write('cjs/package.json', '{ "type": "commonjs" }\n')
}

/** The CommonJS of one module of the sources, with what it imports of them. */
export const commonJsOf = async (module) => {
  const build = await rolldown({
    input: join(root, 'src', module),
    cwd: root,
    platform: 'node',
    external: /^[^./]/,
    tsconfig: false,
  })
  const { output } = await build.generate({ format: 'cjs', codeSplitting: false })
  await build.close()
  return output[0].code
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await bundle(resolve(process.argv[2] ?? root))
