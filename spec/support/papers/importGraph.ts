/** Who imports what in the sources, by the TypeScript API. */
import { readFileSync } from 'node:fs'
import { posix } from 'node:path'
import ts from 'typescript'
import { sources } from './docExamples.js'
import { repository } from '../projects/typecheck.js'

/** One import or re-export. */
export interface Import {
  readonly from: string
  /** A path of the repository, or the name of a package. */
  readonly to: string
  /** Whether it only imports types, which do not exist at run time. */
  readonly typeOnly: boolean
}

const isTypeOnly = (node: ts.ImportDeclaration | ts.ExportDeclaration): boolean => {
  const clause = ts.isImportDeclaration(node) ? node.importClause : node
  if (clause === undefined) return false
  if (clause.isTypeOnly) return true
  const bindings = ts.isImportDeclaration(node) ? node.importClause?.namedBindings : node.exportClause
  const named = bindings !== undefined && (ts.isNamedImports(bindings) || ts.isNamedExports(bindings))
  const byDefault = ts.isImportDeclaration(node) && node.importClause?.name !== undefined
  return named && !byDefault && bindings.elements.length > 0 && bindings.elements.every((one) => one.isTypeOnly)
}

/** Every import of a source, including those in types, such as `import('x').Y`, and dynamic ones. */
const importsOf = (from: string): Import[] => {
  const found: Import[] = []
  const add = (specifier: ts.Node | undefined, typeOnly: boolean) => {
    if (specifier === undefined || !ts.isStringLiteral(specifier)) return
    const { text } = specifier
    const to = text.startsWith('.') ? posix.join(posix.dirname(from), text).replace(/\.js$/, '.ts') : text
    found.push({ from, to, typeOnly })
  }
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) add(node.moduleSpecifier, isTypeOnly(node))
    if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) add(node.argument.literal, true)
    if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) add(node.arguments[0], false)
    ts.forEachChild(node, visit)
  }
  visit(parse(from))
  return found
}

const parse = (path: string) =>
  ts.createSourceFile(path, readFileSync(repository + path, 'utf8'), ts.ScriptTarget.Latest, true)

/** The lines of code, without imports, comments and blank lines. */
export const linesOfCode = (path: string): number => {
  const file = parse(path)
  const lines = new Set<number>()
  const visit = (node: ts.Node): void => {
    if (node.kind === ts.SyntaxKind.EndOfFileToken || ts.isImportDeclaration(node)) return
    for (const at of [node.getStart(file), node.getEnd()]) lines.add(file.getLineAndCharacterOfPosition(at).line)
    ts.forEachChild(node, visit)
  }
  ts.forEachChild(file, visit)
  return lines.size
}

/** All imports of all sources. */
export const importGraph = (): Import[] => sources().flatMap(importsOf)

/** The first path that leads back to its beginning. Types count, too. */
export const cycleOf = (graph: ReadonlyArray<Import>): ReadonlyArray<string> | undefined => {
  const closed = new Set<string>()
  const follow = (at: string, path: ReadonlyArray<string>): ReadonlyArray<string> | undefined => {
    if (path.includes(at)) return [...path.slice(path.indexOf(at)), at]
    if (closed.has(at)) return undefined
    for (const { from, to } of graph) {
      const cycle = from === at ? follow(to, [...path, at]) : undefined
      if (cycle !== undefined) return cycle
    }
    closed.add(at)
    return undefined
  }
  for (const { from } of graph) {
    const cycle = follow(from, [])
    if (cycle !== undefined) return cycle
  }
  return undefined
}
