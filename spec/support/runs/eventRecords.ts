/** The records of one channel, each checked with its schema when it comes. */
import { readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, onTestFinished } from 'vitest'
import { repository } from '../projects/typecheck.js'

const schemaOf = (name: string) =>
  new Ajv2020().compile(JSON.parse(readFileSync(`${repository}src/events/${name}.schema.json`, 'utf8')) as object)

/** Collects the records of one channel until the test has finished. */
export const recordsOf = <R extends object>(name: string, on: (listener: (record: R) => void) => () => void): R[] => {
  const validate = schemaOf(name)
  const records: R[] = []
  onTestFinished(
    on((record) => {
      expect(validate(record), JSON.stringify(validate.errors)).toBe(true)
      expect(Object.isFrozen(record)).toBe(true)
      for (const value of Object.values(record)) expect(Object.isFrozen(value)).toBe(true)
      records.push(record)
    }),
  )
  return records
}
