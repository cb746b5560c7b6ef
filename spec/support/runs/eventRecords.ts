/** The records of one channel, each checked with its schema when it comes. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { on, type Events } from 'koa-with-auth/events'
import { expect, onTestFinished } from 'vitest'
import { repository } from '../projects/typecheck.js'
import { madeOnce } from './madeOnce.js'

const built = madeOnce('events-schema', (folder) => {
  execFileSync(process.execPath, [`${repository}.ci/eventsSchema.mjs`, folder])
})
// Safe: it is the schema that the package has
export const eventsSchema = JSON.parse(readFileSync(`${built}/events.schema.json`, 'utf8')) as {
  readonly $id: string
  readonly $defs: Readonly<Record<string, object>>
}

/** The schema of the records of a channel. */
export const schemaOf = (channel: keyof Events): ValidateFunction =>
  new Ajv2020().addSchema(eventsSchema).compile({ $ref: `${eventsSchema.$id}#/$defs/${channel}` })

/**
 * Collects the records of one channel until the test has finished. Files share a process, so a record of another file can come
 * late; `isOwn` says which records count.
 */
export const recordsOf = <C extends keyof Events>(
  channel: C,
  isOwn: (record: Events[C]) => boolean = () => true,
): Array<Events[C]> => {
  const validate = schemaOf(channel)
  const records: Array<Events[C]> = []
  onTestFinished(
    on(channel, (record) => {
      expect(validate(record), JSON.stringify(validate.errors)).toBe(true)
      expect(Object.isFrozen(record)).toBe(true)
      for (const value of Object.values(record)) expect(Object.isFrozen(value)).toBe(true)
      if (isOwn(record)) records.push(record)
    }),
  )
  return records
}
