/** Loads a module, and audits what it exports. The code of the module runs in this process, as in a test of the application. */
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import * as E from 'fp-ts/lib/Either.js'
import { codeOf } from '../core/data.js'
import type { Audited } from '../audit/application.js'
import { auditedOf, chosen } from './Export.js'

export const loadModule = async (path: string, exportName: string | undefined): Promise<E.Either<string, Audited>> => {
  const file = statSync(resolve(path), { throwIfNoEntry: false })
  if (file === undefined) return E.left('no such file')
  if (!file.isFile()) return E.left('is not a file')
  const namespace = await attempt(() => import(pathToFileURL(resolve(path)).href) as Promise<object>)
  if (E.isLeft(namespace)) return E.left(whyNotLoaded(namespace.left))
  const found = chosen(namespace.right, exportName)
  if (E.isLeft(found)) return found
  const audited = await attempt(() => auditedOf(found.right))
  return E.isLeft(audited) ? E.left(`its ${found.right.name} throws: ${oneLine(audited.left)}`) : audited.right
}

const attempt = async <A>(run: () => Promise<A>): Promise<E.Either<unknown, A>> => {
  try {
    return E.right(await run())
  } catch (error) {
    return E.left(error)
  }
}

const whyNotLoaded = (error: unknown): string =>
  codeOf(error) === 'ERR_UNKNOWN_FILE_EXTENSION'
    ? 'this version of Node does not load such a file; compile it to JavaScript first'
    : `throws: ${oneLine(error)}`

/** What was thrown, in one line of at most 500 characters. The message of `seal` has a line for each finding. */
export const oneLine = (error: unknown): string => {
  const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return message.replaceAll(/\s*\n\s*/g, ' ').slice(0, 500)
}
