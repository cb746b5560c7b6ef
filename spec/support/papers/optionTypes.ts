/** Walks the types of public functions, and finds optional properties that do not take `undefined`. */
import { relative } from 'node:path'
import ts from 'typescript'
import { repository } from '../projects/typecheck.js'

/** An optional property of an object that users pass to a public function. */
interface OptionalProperty {
  /** Where it is declared, and its name: `src/apiApp.ts: ApiAppOptions.title`. */
  readonly declared: string
  /** The first path to it: `apiApp(options)`. */
  readonly way: string
  readonly takesUndefined: boolean
}

// The library makes these and users pass them on, so they are never written as a literal
const madeHere = [
  'Attempt',
  'Kind',
  'Authenticator',
  'AuthError',
  'Description',
  'AnyRouter',
  'AuthRouter',
  'ApiApp',
  'RouterInstance',
  'Routed',
  'Routes',
]
// These are stored, published or sent as they are: records, and the objects of OpenAPI
const records = [
  ...['KeyRecord', 'FoundKey', 'PasskeyRecord', 'Proof', 'SignedOutEvent'],
  ...['ApiKeyScheme', 'HttpScheme', 'MutualTlsScheme', 'OAuth2Scheme', 'OpenIdConnectScheme'],
]

const isIn = (own: string, symbol: ts.Symbol | undefined): boolean =>
  symbol?.declarations?.some((one) => one.getSourceFile().fileName.startsWith(own)) === true

const placeOf = (property: ts.Symbol, type: ts.Type): string => {
  const declaration = property.declarations?.[0]
  if (declaration === undefined) return `${(type.aliasSymbol ?? type.symbol).name}.${property.name}`
  const isHolder = (node: ts.Node) => ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)
  const holder = ts.findAncestor(declaration, isHolder)
  const name = holder === undefined ? '' : `${holder.name.text}.`
  return `${relative(repository, declaration.getSourceFile().fileName)}: ${name}${property.name}`
}

/**
 * The optional properties of everything that the exported functions of `entries` accept: options, nested options,
 * options of methods of their results, and the results of functions among the options. Only what is declared under
 * `own`.
 */
export const optionalProperties = (
  program: ts.Program,
  entries: ReadonlyArray<string>,
  own: string,
): OptionalProperty[] => {
  const checker = program.getTypeChecker()
  const found = new Map<string, OptionalProperty>()
  const seen = { given: new Set<ts.Type>(), returned: new Set<ts.Type>() }

  const partsOf = (type: ts.Type): ReadonlyArray<ts.Type> => {
    const known = type.isTypeParameter() ? (checker.getBaseConstraintOfType(type) ?? type) : type
    return known.isUnion() ? known.types.flatMap(partsOf) : [known]
  }
  const argumentsOf = (type: ts.Type): ReadonlyArray<ts.Type> =>
    (type.flags & ts.TypeFlags.Object) !== 0 ? checker.getTypeArguments(type as ts.TypeReference) : []
  // By identity: under exactOptionalPropertyTypes, the undefined of a missing property is another type
  const isUndefined = (type: ts.Type) =>
    type === checker.getUndefinedType() || (type.flags & (ts.TypeFlags.Unknown | ts.TypeFlags.Any)) !== 0
  const isMadeHere = (type: ts.Type): boolean =>
    [...madeHere, ...records].includes((type.aliasSymbol ?? type.symbol)?.name ?? '') ||
    (type.isIntersection() && type.types.some(isMadeHere))

  // Its own properties, and those that a type of this package takes from another one
  const propertiesOf = (type: ts.Type): ReadonlyArray<ts.Symbol> => {
    const isOurs = isIn(own, type.aliasSymbol) || isIn(own, type.symbol)
    return checker.getPropertiesOfType(type).filter((one) => isOurs || isIn(own, one))
  }

  // What users pass
  const given = (whole: ts.Type, way: string): void => {
    for (const type of isMadeHere(whole) ? [] : partsOf(whole)) {
      if (seen.given.has(type) || isMadeHere(type)) continue
      seen.given.add(type)
      for (const argument of argumentsOf(type)) given(argument, way)
      for (const signature of type.getCallSignatures()) given(signature.getReturnType(), `${way} returns`)
      for (const property of propertiesOf(type)) {
        const its = checker.getTypeOfSymbol(property)
        if ((property.flags & ts.SymbolFlags.Optional) !== 0) {
          const takesUndefined = [its, ...(its.isUnion() ? its.types : [])].some(isUndefined)
          const declared = placeOf(property, type)
          if (found.get(declared)?.takesUndefined !== false) found.set(declared, { declared, way, takesUndefined })
        }
        given(its, `${way}.${property.name}`)
      }
    }
  }

  // What users get: its functions accept something again
  const returned = (whole: ts.Type, way: string): void => {
    for (const type of partsOf(whole)) {
      if (seen.returned.has(type)) continue
      seen.returned.add(type)
      for (const signature of [...type.getCallSignatures(), ...type.getConstructSignatures()]) {
        for (const parameter of signature.getParameters()) {
          given(checker.getTypeOfSymbol(parameter), `${way}(${parameter.name})`)
        }
        returned(signature.getReturnType(), `${way}()`)
      }
      for (const property of propertiesOf(type)) {
        returned(checker.getTypeOfSymbol(property), `${way}.${property.name}`)
      }
    }
  }

  for (const entry of entries) {
    const file = program.getSourceFile(entry)
    const module = file === undefined ? undefined : checker.getSymbolAtLocation(file)
    if (module === undefined) throw new Error(`${entry} exports nothing`)
    for (const exported of checker.getExportsOfModule(module))
      returned(checker.getTypeOfSymbol(exported), exported.name)
  }
  return [...found.values()].sort((one, other) => one.declared.localeCompare(other.declared))
}
