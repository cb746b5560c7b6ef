// Sends mails: here, each one is a JSON file in a folder, or a line of the log.
import { randomUUID } from 'node:crypto'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

export interface Mail {
  readonly to: string
  readonly subject: string
  readonly text: string
  readonly link?: string
  readonly code?: string
}

export type Mailer = (mail: Mail) => Promise<void>

/** A mailer that writes into a folder, or to the log without one. */
export const mailer =
  (folder: string): Mailer =>
  async (mail) => {
    if (folder === '') return console.log(`Mail: ${JSON.stringify(mail)}`)
    const name = `${Date.now()}-${randomUUID()}.json`
    // whoever watches the folder must not read half a mail
    const hidden = join(folder, `.${name}`)
    await writeFile(hidden, JSON.stringify(mail), { flag: 'wx', mode: 0o600 })
    await rename(hidden, join(folder, name))
  }
