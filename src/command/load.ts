/** Loads a module, and audits its export. The code of the module runs in this process, as in a test of the application. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, extname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import * as E from 'fp-ts/lib/Either.js'
import * as TE from 'fp-ts/lib/TaskEither.js'
import { identity } from 'fp-ts/lib/function.js'
import { isRecord } from '../core/checks.js'
import { codeOf, ownField } from '../core/data.js'
import type { Audited } from '../audit/application.js'
import { auditedOf, chosen } from './Export.js'

export const loadModule = async (path: string, exportName: string | undefined): Promise<E.Either<string, Audited>> => {
  const file = statSync(resolve(path), { throwIfNoEntry: false })
  if (file === undefined) return E.left('no such file')
  if (!file.isFile()) return E.left('is not a file')
  const namespace = await TE.tryCatch(() => importModule(resolve(path)), identity)()
  if (E.isLeft(namespace)) return E.left(whyNotLoaded(namespace.left))
  const found = chosen(namespace.right, exportName)
  if (E.isLeft(found)) return found
  const audited = await TE.tryCatch(() => auditedOf(found.right), identity)()
  return E.isLeft(audited) ? E.left(`its ${found.right.name} throws: ${oneLine(audited.left)}`) : audited.right
}

// Files that `import` alone can load. Their code has not run
const onlyByImport = ['ERR_REQUIRE_ESM', 'ERR_REQUIRE_ASYNC_MODULE', 'ERR_UNKNOWN_FILE_EXTENSION']

const isCommonJs = (file: string): boolean => {
  if (extname(file) !== '.js') return extname(file) === '.cjs'
  return typeIn(dirname(file)) !== 'module'
}

// The `type` of the nearest package.json
const typeIn = (folder: string): unknown => {
  const manifest = join(folder, 'package.json')
  if (existsSync(manifest)) return ownField(Object(JSON.parse(readFileSync(manifest, 'utf8'))), 'type')
  return dirname(folder) === folder ? undefined : typeIn(dirname(folder))
}

/** The exports of a module. CommonJS by `require`: `import` sets no `module.parent`, so `if (!module.parent) app.listen()` would listen. */
const importModule = async (file: string): Promise<object> => {
  const load = () => import(pathToFileURL(file).href) as Promise<object>
  if (!isCommonJs(file)) return load()
  try {
    const made: unknown = createRequire(import.meta.url)(file)
    const own = isRecord(made) || typeof made === 'function' ? made : {}
    return { ...own, default: made }
  } catch (error) {
    // of an ES module without a `type`, which only newer versions of Node tell apart
    if (onlyByImport.includes(codeOf(error)) || error instanceof SyntaxError) return load()
    throw error
  }
}

const whyNotLoaded = (error: unknown): string =>
  codeOf(error) === 'ERR_UNKNOWN_FILE_EXTENSION'
    ? 'this version of Node does not load such a file; compile it to JavaScript first'
    : `throws: ${oneLine(error)}`

/** A thrown value in one line of at most 500 characters. The message of `seal` has a line for each finding. */
export const oneLine = (error: unknown): string => {
  const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return message.replaceAll(/\s*\n\s*/g, ' ').slice(0, 500)
}
