#!/usr/bin/env node
/**
 * The program `koa-with-auth`. It reads arguments, prints a result to stdout, and ends with an exit code. A problem is one
 * line on stderr.
 *
 * It ends when the result is written, even if the module has left something running.
 */
import * as E from 'fp-ts/lib/Either.js'
import { writeSync } from 'node:fs'
import { createRequire } from 'node:module'
import { visible } from '../audit/Audit.js'
import { loadModule, oneLine } from './load.js'
import { help, optionsFrom, perform, type Options } from './perform.js'

// In milliseconds
const MAX_LOADING = 60_000

const version = (): string => {
  // relative to this module, because Node does not find the package by its name where it is built
  const manifest: unknown = createRequire(import.meta.url)('../../package.json')
  return typeof manifest === 'object' && manifest !== null && 'version' in manifest ? String(manifest.version) : ''
}

const exit = process.exit.bind(process)
const writeResult = process.stdout.write.bind(process.stdout)

const exitWith = (code: number): never => {
  // listeners of the module must not run
  process.removeAllListeners('exit')
  return exit(code)
}

const failWith = (reason: string): never => {
  try {
    writeSync(2, `koa-with-auth: ${visible(reason)}\n`)
  } catch {
    // the reader has gone
  }
  return exitWith(2)
}

const succeed = (text: string, code: number): void => {
  process.stdout.on('error', () => exitWith(code))
  writeResult(text.endsWith('\n') ? text : `${text}\n`, () => exitWith(code))
}

const runAudit = async (options: Options): Promise<void> => {
  const { module } = options
  const failed = (reason: string): never => failWith(`${module}: ${reason}`)
  // the output of the module is not the result
  Object.assign(process.stdout, { write: process.stderr.write.bind(process.stderr) })
  const raised = (error: unknown): never => failed(`throws: ${oneLine(error)}`)
  process.on('uncaughtException', raised).on('unhandledRejection', raised)
  process.on('exit', () => failed('ends the process, or never ends loading'))
  setTimeout(() => failed(`is not loaded after ${MAX_LOADING / 1000} seconds`), MAX_LOADING).unref()

  const audited = await loadModule(module, options.exportName)
  if (process.getActiveResourcesInfo().includes('TCPServerWrap')) {
    return failed('listens; export the application from a module that does not')
  }
  if (E.isLeft(audited)) return failed(audited.left)
  const result = perform(options, audited.right, version())
  if (E.isLeft(result)) return failWith(result.left)
  succeed(result.right.text, result.right.code)
}

const request = optionsFrom(process.argv.slice(2))
if (E.isLeft(request)) failWith(`${request.left}; see koa-with-auth --help`)
else if (request.right._tag === 'Help') succeed(help, 0)
else if (request.right._tag === 'Sql') succeed(request.right.text, 0)
else if (request.right._tag === 'Version') succeed(version(), 0)
else runAudit(request.right).catch((error: unknown) => failWith(oneLine(error)))
