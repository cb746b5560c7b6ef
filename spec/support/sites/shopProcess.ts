/** The shop of the examples as processes of its own, as `npm run shop` starts it: its settings are environment variables. */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, onTestFinished } from 'vitest'
import type { Mail } from '../../../examples/shop/mail.js'
import { exampleProject, start } from '../papers/examplesProcess.js'
import { freePort } from '../servers/redisServer.js'
import { repository } from '../projects/typecheck.js'
import type { UserProject } from '../projects/userProject.js'
import { jsonClient, type JsonClient } from '../servers/jsonClient.js'

/** The key of its cookies, if no other is given. */
export const KEY = 'a key of the shop that is long enough'

export type ShopProcess = Awaited<ReturnType<ReturnType<typeof machine>['start']>>

/** A machine for each test, while the surrounding suite runs. Call it inside of tests. */
export const shopMachines = () => {
  let project: UserProject | undefined
  beforeAll(() => {
    project = exampleProject()
    cpSync(`${repository}examples/shop/public`, join(project.folder, 'examples/shop/public'), { recursive: true })
  }, 120_000)
  afterAll(() => project?.remove())
  return () => machine(project!.folder)
}

const machine = (folder: string) => {
  const own = mkdtempSync(join(tmpdir(), 'shop-machine-'))
  const mailFolder = join(own, 'mails')
  mkdirSync(mailFolder)
  onTestFinished(() => rmSync(own, { recursive: true, force: true }))
  const read = new Set<string>()
  const next = () => readdirSync(mailFolder).find((name) => !name.startsWith('.') && !read.has(name))
  return {
    /** The next mail. */
    mail: async () => {
      for (let at = 0; at < 12_000 && next() === undefined; at++) await pause(10)
      const name = next()
      if (name === undefined) throw new Error('no mail came')
      read.add(name)
      // Safe: the shop wrote it
      return JSON.parse(readFileSync(join(mailFolder, name), 'utf8')) as Mail
    },
    /** Starts a process until the test has finished. All share the file, the mails and the origin. */
    start: async (env: NodeJS.ProcessEnv = {}) => {
      const port = await freePort()
      const running = start(folder, process.execPath, ['examples/shop/server.js'], {
        PORT: String(port),
        ORIGIN: 'http://localhost:3001',
        KEYS: KEY,
        DATABASE_URL: `file:${join(own, 'shop.db')}`,
        MAIL_DIR: mailFolder,
        // no provider of its own, which takes long to load
        ISSUER: 'http://127.0.0.1:9',
        CLIENT_ID: 'shop',
        CLIENT_SECRET: 'a secret',
        ...env,
      })
      onTestFinished(() => running.signal('SIGKILL'))
      await running.printed('Stop with Ctrl-C.')
      const url = `http://127.0.0.1:${port}`
      return {
        url,
        /** The same, as browsers know it. */
        origin: `http://localhost:${port}`,
        /** A client, with the cookies of another one if it is given. */
        client: (from?: JsonClient) => jsonClient(() => url, from),
        /** What it printed after its start. */
        log: () => running.output.stdout.split('Stop with Ctrl-C.\n').slice(1).join('') + running.output.stderr,
        /** Ends it as a terminal does, and resolves to its exit code. */
        stop: () => {
          running.signal('SIGTERM')
          return running.exited
        },
      }
    },
  }
}
