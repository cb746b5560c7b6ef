/** The shop of the examples as a program of its own, started with environment variables. */
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, onTestFinished } from 'vitest'
import { exampleProject, start } from '../papers/examplesProcess.js'
import { repository } from '../projects/typecheck.js'
import { freePort } from '../servers/redisServer.js'

export interface ShopProcess {
  readonly port: number
  /** `http://localhost:port`, wherever `ORIGIN` is. */
  readonly url: string
  /** What it printed, from the start on. */
  readonly log: () => string
  readonly stop: () => Promise<void>
}

export interface ShopProgram {
  /** Starts it until the test has finished. */
  readonly start: (env: Readonly<Record<string, string>>, port?: number) => Promise<ShopProcess>
  /** The URL of a file for one test, which does not exist yet. */
  readonly file: () => string
}

/** The keys of the processes, unless `KEYS` is given. */
export const KEYS = 'a key of the shop that is long enough'

/** Compiles the program for the time of a suite. */
export const shopProgram = (): ShopProgram => {
  let project: ReturnType<typeof exampleProject> | undefined
  beforeAll(() => {
    project = exampleProject()
    cpSync(`${repository}examples/shop/public`, join(project.folder, 'examples/shop/public'), { recursive: true })
  }, 120_000)
  afterAll(() => project?.remove())
  return {
    file: () => {
      const folder = mkdtempSync(join(tmpdir(), 'shop-'))
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
      return `file:${join(folder, 'shop.db')}`
    },
    start: async (env, given) => {
      const port = given ?? (await freePort())
      const args = ['examples/shop/server.js']
      const running = start(project?.folder ?? '', process.execPath, args, { KEYS, ...env, PORT: String(port) })
      const stop = async () => {
        running.signal('SIGKILL')
        await running.exited
      }
      onTestFinished(stop)
      await running.printed('Stop with Ctrl-C.')
      return {
        port,
        url: `http://localhost:${port}`,
        log: () => running.output.stdout + running.output.stderr,
        stop,
      }
    },
  }
}
