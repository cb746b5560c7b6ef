/**
 * The files of the docs page: an exact list, not a folder. The files of `swagger-ui-dist` are read from the installed
 * package. Nothing comes from elsewhere, and no part of a request becomes part of a path.
 */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { here } from './here.js'
import { pageScript } from './pageScript.js'
import { pageStyle } from './pageStyle.js'

/** A file that is served unchanged. */
export interface Asset {
  /** The media type. */
  readonly type: string
  readonly content: Buffer
  /** A validator (RFC 9110 §8.8.3) that depends only on the content. */
  readonly etag: string
}

/** The name of an asset, and a function that loads it, or rejects while the file cannot be read. */
export interface AssetSource {
  readonly name: string
  readonly load: () => Promise<Asset>
}

const SCRIPT = 'text/javascript; charset=utf-8'
const STYLE = 'text/css; charset=utf-8'
const IMAGE = 'image/png'

// The files that the page links to, and no others of the package
const fromPackage: ReadonlyArray<readonly [name: string, type: string]> = [
  ['swagger-ui.css', STYLE],
  ['swagger-ui-bundle.js', SCRIPT],
  ['favicon-16x16.png', IMAGE],
  ['favicon-32x32.png', IMAGE],
]

const ours: ReadonlyArray<readonly [name: string, type: string, text: string]> = [
  ['page.css', STYLE, pageStyle],
  ['page.js', SCRIPT, pageScript],
]

/** Makes an asset with its validator. */
export const assetOf = (type: string, content: Buffer | string): Asset => {
  const bytes = Buffer.from(content)
  return { type, content: bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url')}"` }
}

/**
 * The folder of the installed `swagger-ui-dist`, as the module at `from` finds it; `undefined` if it is not installed.
 */
export const findSwaggerUi = (from: string | URL = here): string | undefined => {
  try {
    return dirname(createRequire(from).resolve('swagger-ui-dist/package.json'))
  } catch {
    return undefined
  }
}

/** The folder of the installed `swagger-ui-dist`. Throws a TypeError that says what to install if it is missing. */
export const requireSwaggerUi = (place: string, from?: string | URL): string => {
  const folder = findSwaggerUi(from)
  if (folder === undefined) {
    throw new TypeError(`${place}: the docs page needs swagger-ui-dist; install it: npm install swagger-ui-dist`)
  }
  return folder
}

/** All files that the page links to. */
export const assetsIn = (folder: string): ReadonlyArray<AssetSource> => [
  ...fromPackage.map(([name, type]) => ({
    name,
    load: once(async () => assetOf(type, await readFile(join(folder, name)))),
  })),
  ...ours.map(([name, type, text]) => {
    const asset = assetOf(type, text)
    return { name, load: () => Promise.resolve(asset) }
  }),
]

// A file that cannot be read now is tried again
const once = <A>(load: () => Promise<A>): (() => Promise<A>) => {
  let loading: Promise<A> | undefined
  return () => {
    loading ??= load().catch((error: unknown) => {
      loading = undefined
      throw error
    })
    return loading
  }
}
