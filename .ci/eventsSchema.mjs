// Makes the JSON Schema of the records of events from their types and docstrings in src/core/events.ts.
// `node .ci/eventsSchema.mjs FOLDER` writes events.schema.json there.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const file = fileURLToPath(new URL('../src/core/events.ts', import.meta.url))
const { NodeNext } = ts.ModuleKind
const program = ts.createProgram([file], { strict: true, target: ts.ScriptTarget.ES2022, module: NodeNext })
const checker = program.getTypeChecker()
const source = program.getSourceFile(file)

const textOf = (symbol) => ts.displayPartsToString(symbol.getDocumentationComment(checker)).replaceAll('\n', ' ').trim()

// types whose name says more than what they are made of
const named = { Digest: { type: 'string', pattern: '^[A-Za-z0-9_-]{43}$' } }

const literalOf = (type) => (type.isLiteral() ? type.value : checker.typeToString(type) === 'true')
const isLiteral = (type) => type.isLiteral() || (type.flags & ts.TypeFlags.BooleanLiteral) !== 0

const unionOf = (types) => {
  const given = types.filter(({ flags }) => (flags & ts.TypeFlags.Undefined) === 0)
  if (given.every(({ flags }) => flags & ts.TypeFlags.BooleanLiteral) && given.length === 2) return { type: 'boolean' }
  if (given.every(isLiteral))
    return given.length === 1 ? { const: literalOf(given[0]) } : { enum: given.map(literalOf) }
  return given.length === 1 ? schemaOf(given[0]) : { oneOf: given.map(schemaOf) }
}

const objectOf = (type) => {
  const members = type.getProperties().map((property) => {
    const [declaration] = property.declarations ?? []
    const written = declaration?.type?.getText()
    const description = textOf(property)
    const schema = named[written] ?? schemaOf(checker.getTypeOfSymbolAtLocation(property, source))
    return { property, schema: description === '' ? schema : { ...schema, description } }
  })
  return {
    type: 'object',
    properties: Object.fromEntries(members.map(({ property, schema }) => [property.name, schema])),
    required: members
      .filter(({ property: { flags } }) => !(flags & ts.SymbolFlags.Optional))
      .map(({ property }) => property.name),
    additionalProperties: false,
  }
}

const schemaOf = (type) => {
  if (type.isUnion()) return unionOf(type.types)
  if (isLiteral(type)) return { const: literalOf(type) }
  if (type.flags & ts.TypeFlags.String) return { type: 'string' }
  if (type.flags & ts.TypeFlags.Number) return { type: 'number' }
  if (checker.isArrayType(type)) return { type: 'array', items: schemaOf(checker.getTypeArguments(type)[0]) }
  if (type.flags & ts.TypeFlags.Object || type.isIntersection()) return objectOf(type)
  throw new Error(`src/core/events.ts: no JSON has the type ${checker.typeToString(type)}`)
}

const records = checker.getExportsOfModule(checker.getSymbolAtLocation(source)).find(({ name }) => name === 'Events')
const channels = checker.getDeclaredTypeOfSymbol(records).getProperties()
const recordOf = (channel) => {
  const type = checker.getTypeOfSymbolAtLocation(channel, source)
  const symbol = type.aliasSymbol ?? type.getSymbol()
  return [channel.name, { title: symbol.name, description: textOf(symbol), ...schemaOf(type) }]
}

/** The schema: the record of each channel is under `$defs`, by the name of the channel. */
export const eventsSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  $id: 'koa-with-auth/events.schema.json',
  title: 'Events',
  description: 'The records of koa-with-auth, by the channel that reports them.',
  $defs: Object.fromEntries(channels.map(recordOf)),
}

const [, , folder] = process.argv
if (folder !== undefined && process.argv[1] === fileURLToPath(import.meta.url)) {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'events.schema.json'), JSON.stringify(eventsSchema))
}
