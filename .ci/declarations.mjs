// Completes the declarations that tsc has built. Only those stay that a user can reach from an entry point. @koa/router and
// koa-session declare their classes once for each module system, so what names them is there twice. All else is in
// dist/cjs, as the implementation is, and what is there twice imports it from there. Headers of files go, except those of
// entry points: no editor shows them. Of those, the reading guide goes: the sources are not in the package. The JSON Schema
// of records is copied.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import ts from 'typescript'

const { exports } = JSON.parse(readFileSync('package.json', 'utf8'))
const entries = new Set(Object.values(exports).flatMap((entry) => entry.import?.types.slice(2) ?? []))
const header = /^\/\*\*(?:[^*]|\*(?!\/))*\*\/\n(?=import )/
const readingGuide = /^ \*\n \* Reading guide:[^]*?\n(?= \*\/)/m
const declarationOf = (file, name) => posix.join(posix.dirname(file), name.replace(/\.js$/, '.d.ts'))
const pathTo = (file, target) => {
  const path = posix.relative(posix.dirname(file), target.replace(/\.d\.ts$/, '.js'))
  return path.startsWith('.') ? path : `./${path}`
}
const withoutComments = (text) => text.replace(/\/\*[^]*?\*\/|\/\/[^\n]*/g, '')

// -------------------------------------------------------------------------------------
// what can be reached
// -------------------------------------------------------------------------------------

const files = new Map()
const fileOf = (path) => {
  const known = files.get(path)
  if (known !== undefined) return known
  const whole = readFileSync(path, 'utf8')
  const text = whole.replace(entries.has(path) ? readingGuide : header, '')
  const { statements } = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)
  const file = { path, text, statements, kept: new Set(), imported: new Set(), exported: new Set() }
  files.set(path, file)
  return file
}
const from = (file, statement) => {
  const name = statement.moduleSpecifier?.text
  return name?.startsWith('.') ? declarationOf(file.path, name) : undefined
}
const namesOf = (statement) =>
  ts.isVariableStatement(statement)
    ? statement.declarationList.declarations.map(({ name }) => name.getText())
    : statement.name === undefined
      ? []
      : [statement.name.getText()]
const isImport = (statement) => ts.isImportDeclaration(statement)
const isExport = (statement) => ts.isExportDeclaration(statement)

// All that a file exports, for `export *` and for namespaces
const reachAll = (path) => {
  const file = fileOf(path)
  for (const statement of file.statements) {
    if (isExport(statement) && statement.exportClause !== undefined) {
      for (const { name } of statement.exportClause.elements) reach(path, name.text)
    } else if (!isImport(statement) && !isExport(statement)) for (const name of namesOf(statement)) reach(path, name)
  }
}
const reach = (path, name) => {
  const file = fileOf(path)
  if (file.exported.has(name)) return
  file.exported.add(name)
  for (const statement of file.statements) {
    if (!isExport(statement) || statement.exportClause === undefined) continue
    for (const one of statement.exportClause.elements) {
      if (one.name.text !== name) continue
      const target = from(file, statement)
      const own = (one.propertyName ?? one.name).text
      if (target !== undefined) reach(target, own)
      else use(file, own)
    }
  }
  use(file, name)
}
// A name that a file declares or imports
const use = (file, name) => {
  for (const statement of file.statements) {
    if (isImport(statement)) useImport(file, statement, name)
    else if (!isExport(statement) && namesOf(statement).includes(name)) keep(file, statement)
  }
}
const useImport = (file, statement, name) => {
  const bindings = statement.importClause?.namedBindings
  const target = from(file, statement)
  if (bindings === undefined || !ts.isNamedImports(bindings)) return
  for (const one of bindings.elements) {
    if (one.name.text !== name) continue
    file.imported.add(name)
    if (target !== undefined) reach(target, (one.propertyName ?? one.name).text)
  }
}
const keep = (file, statement) => {
  if (file.kept.has(statement)) return
  file.kept.add(statement)
  const code = withoutComments(statement.getText())
  for (const [, name] of code.matchAll(/(?<![\w$.])([A-Za-z_$][\w$]*)/g)) {
    const namespace = file.statements.find(
      (one) => isImport(one) && one.importClause?.namedBindings?.name?.text === name && from(file, one) !== undefined,
    )
    if (namespace === undefined) use(file, name)
    else {
      const members = [...code.matchAll(new RegExp(`(?<![\\w$.])${name}\\.(\\w+)`, 'g'))].map(([, member]) => member)
      const bare = new RegExp(`(?<![\\w$.])${name}(?![\\w$.])`).test(code)
      file.imported.add(name)
      if (bare) reachAll(from(file, namespace))
      for (const member of members) reach(from(file, namespace), member)
    }
  }
  for (const [, name, member] of code.matchAll(/import\("(\.[^"]+)"\)\.(\w+)/g)) {
    reach(declarationOf(file.path, name), member)
  }
}
for (const entry of entries) reachAll(entry)
for (const file of files.values()) {
  // such as an augmentation of Koa's types
  for (const one of file.statements) if (ts.isModuleDeclaration(one)) keep(file, one)
}

// What stays of a file
const rest = (file) => {
  const pieces = []
  for (const one of file.statements) {
    const text = file.text.slice(one.getFullStart(), one.end)
    if (isImport(one)) {
      const { importClause: clause } = one
      const bindings = clause?.namedBindings
      if (clause === undefined) continue
      if (bindings === undefined || !ts.isNamedImports(bindings)) {
        const name = bindings?.name.text ?? clause.name?.text
        const isUsed = file.imported.has(name) || [...file.kept].some((kept) => kept.getText().includes(name))
        if (isUsed) pieces.push(text)
        continue
      }
      const used = bindings.elements.filter(({ name }) => file.imported.has(name.text))
      if (used.length === 0) continue
      const list = used.map((element) => element.getText()).join(', ')
      pieces.push(
        text.slice(0, bindings.getStart() - one.getFullStart()) +
          `{ ${list} }` +
          text.slice(bindings.end - one.getFullStart()),
      )
    } else if (isExport(one)) {
      const { exportClause: clause } = one
      if (clause === undefined) {
        pieces.push(text)
        continue
      }
      const used = clause.elements.filter(({ name }) => file.exported.has(name.text))
      if (used.length === 0 && clause.elements.length > 0) continue
      const list = used.map((element) => element.getText()).join(', ')
      pieces.push(
        text.slice(0, clause.getStart() - one.getFullStart()) +
          `{ ${list} }` +
          text.slice(clause.end - one.getFullStart()),
      )
    } else if (file.kept.has(one)) pieces.push(text)
  }
  return `${pieces.join('').trimStart()}\n`
}

// -------------------------------------------------------------------------------------
// where it stays
// -------------------------------------------------------------------------------------

const needed = new Map(
  [...files.values()]
    .map((file) => [file.path, rest(file)])
    .map(([path, text]) => [
      path,
      { text, names: ts.preProcessFile(text).importedFiles.map(({ fileName }) => fileName) },
    ]),
)
const declaredTwice = ['@koa/router', 'koa-session']
const twice = new Set()
for (let before = -1; before !== twice.size;) {
  before = twice.size
  for (const [file, { names }] of needed) {
    const leads = names.some((name) => declaredTwice.includes(name) || twice.has(declarationOf(file, name)))
    if (leads) twice.add(file)
  }
}

for (const file of readdirSync('dist', { recursive: true })) {
  if (file.endsWith('.d.ts')) rmSync(join('dist', file))
}
const write = (file, text) => {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}
const ofImplementation = (file) => file.replace(/^dist\//, 'dist/cjs/')
for (const [file, { text }] of needed) {
  write(ofImplementation(file), text)
  if (twice.has(file)) {
    const importing = text.replace(/(\bfrom |\bimport\()(["'])(\.[^"']*)\2/g, (found, before, quote, name) => {
      const target = declarationOf(file, name)
      return twice.has(target) ? found : `${before}${quote}${pathTo(file, ofImplementation(target))}${quote}`
    })
    write(file, importing)
  } else if (entries.has(file)) write(file, `export * from '${pathTo(file, ofImplementation(file))}'\n`)
}
// without blanks
write('dist/events.schema.json', JSON.stringify(JSON.parse(readFileSync('src/events/events.schema.json', 'utf8'))))
