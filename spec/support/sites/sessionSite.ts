/**
 * A site with sessions as a child process, and the files that it runs from. It can start any other program that prints
 * its port.
 */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { buildPackage } from '../projects/builtPackage.js'
import { repository } from '../projects/typecheck.js'
import { compiled } from '../projects/userProject.js'

/** What a site reports about itself. */
export interface SiteState {
  /** How often its handlers ran. */
  readonly calls: Readonly<Record<string, number>>
  /** The errors of Koa's `error` event and of the store since `reset`, and how often they occurred. */
  readonly failures: Readonly<Record<string, number>>
  /** The longest time since `reset` for which its event loop was blocked, in milliseconds; see `sessionSiteLoop.ts`. */
  readonly heldFor: number
  /** Resident memory, in bytes. */
  readonly resident: number
}

export type Site = Awaited<ReturnType<typeof startSite>>

interface SiteCommand {
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string>>
}

const program = 'spec/support/sites/sessionSiteApp'
const common = ['spec/support/sites/program', 'spec/support/stores/aroundStore']
const programs = ['App', 'Stores', 'Loop'].map((part) => `spec/support/sites/sessionSite${part}`)

/**
 * The program of the site and the sources of the package as JavaScript, in a folder where the package finds itself by
 * its name. A test that needed `dist` would depend on when it was built.
 */
export const buildSite = (more: ReadonlyArray<string> = []) => {
  const folder = mkdtempSync(join(tmpdir(), 'koa-with-auth-site-'))
  const write = (from: string, to: string): void => {
    mkdirSync(dirname(join(folder, to)), { recursive: true })
    writeFileSync(join(folder, to), compiled(from))
  }
  for (const one of [...programs, ...common, ...more]) write(`${one}.ts`, `${one}.js`)
  symlinkSync(`${repository}node_modules`, join(folder, 'node_modules'))
  buildPackage(folder)
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

/** The settings of a site in a folder. Sites with the same keys accept each other's cookies. */
export const siteCommand = (
  folder: string,
  env: Readonly<Record<string, string>>,
  keys = randomBytes(32).toString('hex'),
): SiteCommand => ({
  command: process.execPath,
  args: [join(folder, `${program}.js`)],
  env: { KEYS: keys, NODE_ENV: 'test', ...env },
})

/** Starts another program of the folder, and resolves when it prints its port. */
export const startProgram = (folder: string, path: string, env: Readonly<Record<string, string>>) =>
  startSite({ command: process.execPath, args: [join(folder, `${path}.js`)], env: { NODE_ENV: 'test', ...env } })

/** Starts a site, and resolves when it listens. */
export const startSite = async ({ command, args, env }: SiteCommand) => {
  const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'pipe'] })
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const port = await new Promise<number>((resolve, reject) => {
    let printed = ''
    const look = (chunk: Buffer): void => {
      printed += chunk.toString()
      const [, found] = /listening on (\d+)|:(\d+)\b/.exec(printed) ?? []
      if (found !== undefined) resolve(Number(found))
    }
    child.stdout.on('data', look)
    child.stderr.on('data', (chunk: Buffer) => (printed += chunk.toString()))
    child.once('error', reject)
    void exited.then(() => reject(new Error(`the site ended: ${printed}`)))
  })
  const ask = async (method: string): Promise<SiteState> => {
    const response = await fetch(`http://127.0.0.1:${port}/site`, { method })
    return (await response.json()) as SiteState
  }
  return {
    port,
    pid: child.pid ?? 0,
    state: () => ask('GET'),
    /** Resets delays and failures. */
    reset: () => ask('POST'),
    stop: () => {
      child.kill('SIGKILL')
      return exited
    },
  }
}
