/**
 * The parameters of an operation: those of its path, and those that it declares.
 *
 * A declared parameter adds to the one of the path that has the same name, and wins.
 */
import type { OpenAPIV3_1 } from 'openapi-types'
import type { PathParameter } from './pathTemplates.js'

type Parameter = OpenAPIV3_1.ParameterObject | OpenAPIV3_1.ReferenceObject

/** The parameters of a path, with their names in the document. */
export interface PathParameters {
  /** With the names of the route. */
  readonly own: ReadonlyArray<PathParameter>
  /** Their names in the document, in the same order. */
  readonly names: ReadonlyArray<string>
}

/** Finds what a reference to a component refers to. */
export type Resolve = (parameter: Parameter) => OpenAPIV3_1.ParameterObject | undefined

/** Resolves references among the components of a document; `undefined` for other references. */
export const resolveAmong =
  (components: OpenAPIV3_1.ComponentsObject['parameters'] = {}): Resolve =>
  (parameter) => {
    if (!('$ref' in parameter)) return parameter
    const found = components[/^#\/components\/parameters\/([A-Za-z0-9._-]+)$/.exec(parameter.$ref)?.[1] ?? '']
    return found === undefined || '$ref' in found ? undefined : found
  }

/** All parameters of an operation, those of the path first. */
export const parametersOf = (
  { own, names }: PathParameters,
  declared: ReadonlyArray<Parameter>,
  resolve: Resolve,
): Parameter[] => {
  const inPath = (parameter: Parameter): string | undefined => {
    const found = resolve(parameter)
    return found?.in === 'path' ? found.name : undefined
  }
  const ofPath = own.map((parameter, at): Parameter => {
    const name = names[at]!
    const said = declared.find((one) => inPath(one) === parameter.name)
    if (said !== undefined && '$ref' in said && name === parameter.name) return said
    return { ...derived(parameter, said === undefined ? undefined : resolve(said)), name }
  })
  // A path parameter that this path does not have belongs to another path of the route
  return [...ofPath, ...declared.filter((one) => inPath(one) === undefined)]
}

const derived = (
  { name, wildcard }: PathParameter,
  said: OpenAPIV3_1.ParameterObject | undefined,
): OpenAPIV3_1.ParameterObject => ({
  name,
  in: 'path',
  ...(wildcard && { description: 'One or more segments of the path, with the slashes between them' }),
  // a Parameter Object has one of the two
  ...(said?.content === undefined && { schema: { type: 'string' } }),
  ...said,
  // OpenAPI 3.1, Parameter Object: "the value MUST be true"
  required: true,
})

/** A declared path parameter that no path of the route has. */
export const strangerAmong = (
  declared: ReadonlyArray<Parameter>,
  paths: ReadonlyArray<ReadonlyArray<PathParameter>>,
  resolve: Resolve,
): string | undefined =>
  declared
    .map(resolve)
    .find((one) => one?.in === 'path' && !paths.some((path) => path.some(({ name }) => name === one.name)))?.name
