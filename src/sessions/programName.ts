/**
 * The default name of an application: the name of the package whose program runs.
 *
 * All processes of a service have the same name, wherever they are deployed. Two services on one Redis have different names.
 */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import * as is from '../core/checks.js'
import { jsonFields, unlessThrown } from '../core/data.js'
import { digest } from '../crypto/secrets.js'

const packageNameAt = (folder: string): string | undefined => {
  for (let at = folder; ; at = dirname(at)) {
    const name = packageNameIn(join(at, 'package.json'))
    if (name !== undefined || dirname(at) === at) return name
  }
}

const packageNameIn = (file: string): string | undefined => {
  const { name } = jsonFields(unlessThrown(() => readFileSync(file, 'utf8')) ?? '') ?? {}
  return is.isFilled(name) && name.trim() !== '' ? name : undefined
}

/** The name of the program's package, else of the working directory's, else `''`. */
const applicationName = (): string => {
  const [, program] = process.argv
  return (program === undefined ? undefined : packageNameAt(dirname(program))) ?? packageNameAt(process.cwd()) ?? ''
}

/**
 * The default name. Without a name, programs would share their sessions on one store with the same keys: in production a
 * TypeError, otherwise a warning and a name of its own.
 */
export const programName = (isProduction: boolean): string => {
  const found = applicationName()
  if (found !== '') return found
  if (isProduction) throw new TypeError(`sessions(app, { name }) is required: ${unnamed}`)
  process.emitWarning(`sessions(app, { name }) is missing: ${unnamed}`, 'SessionWarning')
  return `unnamed ${digest(JSON.stringify([process.cwd(), process.argv[1]]), 'hex')}`
}

const unnamed =
  'no package.json with a name was found for this program; give the application a name, such as name: "shop", which its sessions are bound to'
