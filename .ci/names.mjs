// Gives each binding that chunks share one name in all of them. An import is then the same text in an ES module and in
// CommonJS, `{a,b}`, and gzip finds it again; else each chunk would say under which own names it has what it imports.
import { posix } from 'node:path'
import { analyze } from 'eslint-scope'
import { parseSync, Visitor } from 'rolldown/utils'

/** The text with these parts of it replaced. */
export const applied = (code, changes) =>
  changes
    .sort((a, b) => b.start - a.start || b.end - a.end)
    .reduce((before, { start, end, text }) => before.slice(0, start) + text + before.slice(end), code)

/** The program of a module. */
export const parsed = (name, code) => {
  const { program, errors } = parseSync(name, code, { range: true })
  if (errors.length > 0) throw new Error(`${name}: ${errors[0].message}`)
  return program
}

const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'
const reserved = ['as', 'do', 'if', 'in', 'of', 'for', 'get', 'let', 'new', 'set', 'try', 'var']
const namesBeside = function* (taken) {
  for (let length = 2; ; length += 1) {
    for (let at = 0; at < LETTERS.length ** length; at += 1) {
      const digits = Array.from({ length }, (_, digit) => Math.floor(at / LETTERS.length ** digit) % LETTERS.length)
      const name = digits.map((digit) => LETTERS[digit]).join('')
      if (!taken.has(name)) yield name
    }
  }
}

const isLink = ({ type, source }) =>
  (type === 'ImportDeclaration' && source.value.startsWith('.')) || type === 'ExportNamedDeclaration'
const fileOf = (from, fileName) => posix.join(posix.dirname(fileName), from)

// A class says its name to users, and so does a value that takes it from its variable
const saysItsName = ({ defs }) =>
  defs.some(({ type, node }) => type === 'ClassName' || /^Class/.test(node.init?.type ?? ''))

// What a chunk shares, each with its variable and a key: the file that has it, and how that file calls it
const sharedOf = ({ fileName, program }) => {
  const { scopes } = analyze(program, { ecmaVersion: 2024, sourceType: 'module' })
  const keys = new Map()
  for (const { type, source, specifiers } of program.body.filter(isLink)) {
    for (const one of specifiers) {
      if (one.type === 'ImportNamespaceSpecifier') throw new Error(`${fileName} imports all of a chunk`)
      if (type === 'ImportDeclaration')
        keys.set(one.local.name, `${fileOf(source.value, fileName)} ${one.imported.name}`)
      else if (source === null && !keys.has(one.local.name))
        keys.set(one.local.name, `${fileName} ${one.exported.name}`)
    }
  }
  return scopes
    .find(({ type }) => type === 'module')
    .variables.filter((one) => keys.has(one.name) && !saysItsName(one))
    .map((variable) => ({ key: keys.get(variable.name), variable }))
}

const renamed = ({ fileName, code, program }, shared, nameOf, isKept) => {
  const outer = (file, name) => (isKept(file) ? name : (nameOf.get(`${file} ${name}`) ?? name))
  const own = new Map(shared.map(({ key, variable }) => [variable.name, nameOf.get(key)]))
  const links = program.body.filter(isLink)
  const written = { ImportDeclaration: [], ExportNamedDeclaration: [] }
  for (const { type, source, specifiers } of links) {
    const from = source === null ? undefined : fileOf(source.value, fileName)
    const texts = specifiers.map(({ local, imported, exported }) => {
      const [before, after] = imported
        ? [outer(from, imported.name), own.get(local.name) ?? local.name]
        : [from ? outer(from, local.name) : (own.get(local.name) ?? local.name), outer(fileName, exported.name)]
      return before === after ? before : `${before} as ${after}`
    })
    const list = specifiers.length === 0 && source ? '' : `{${texts.sort().join(',')}}`
    const at = source === null ? '' : `${list && 'from'}${source.raw}`
    written[type].push(`${type === 'ImportDeclaration' ? 'import' : 'export'}${list}${at};`)
  }
  const shorthands = new Set()
  new Visitor({
    Property: ({ shorthand, key }) => {
      if (shorthand) shorthands.add(key.start)
    },
  }).visit(program)
  const changes = links.map(({ start, end }) => ({ start, end, text: '' }))
  const isInLink = ({ start }) => links.some((one) => one.start <= start && start < one.end)
  for (const { variable } of shared) {
    const places = [...variable.identifiers, ...variable.references.map(({ identifier }) => identifier)]
    for (const { start, end } of new Set(places.filter((one) => !isInLink(one)))) {
      const text = own.get(variable.name)
      changes.push({ start, end, text: shorthands.has(start) ? `${variable.name}:${text}` : text })
    }
  }
  const [, shebang, rest] = /^(#!.*\n)?([^]*)$/.exec(applied(code, changes))
  return [shebang, ...written.ImportDeclaration, rest.trim(), ...written.ExportNamedDeclaration].join('')
}

/** The code of each chunk, by file. `isKept` says of a file that others than chunks name what it exports. */
export const withSharedNames = (chunks, isKept) => {
  const all = chunks.map((chunk) => ({ ...chunk, program: parsed(chunk.fileName, chunk.code) }))
  const shared = all.map(sharedOf)
  const uses = new Map()
  for (const { key, variable } of shared.flat()) uses.set(key, (uses.get(key) ?? 0) + variable.references.length)
  const names = namesBeside(new Set([...reserved, ...chunks.flatMap(({ code }) => code.match(/[\w$]+/g) ?? [])]))
  const nameOf = new Map([...uses].sort((a, b) => b[1] - a[1]).map(([key]) => [key, names.next().value]))
  return new Map(all.map((one, at) => [one.fileName, renamed(one, shared[at], nameOf, isKept)]))
}
