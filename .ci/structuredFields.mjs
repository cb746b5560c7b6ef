/**
 * The tests of structured fields (https://github.com/httpwg/structured-field-tests) for the reader that
 * `koa-with-auth/signatures` uses: which input is refused, and that what is read is written again in its canonical form.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as fields from 'structured-headers'

const readers = {
  item: [fields.parseItem, fields.serializeItem],
  list: [fields.parseList, fields.serializeList],
  dictionary: [fields.parseDictionary, fields.serializeDictionary],
}

const outcomeOf = ({ raw, header_type: type, canonical, must_fail: mustFail = false, can_fail: canFail = false }) => {
  const [parse, serialize] = readers[type]
  let read
  try {
    read = parse(raw.join(', '))
  } catch {
    return mustFail || canFail ? 'right' : 'refused'
  }
  if (mustFail) return 'accepted'
  // an empty list or dictionary is not sent at all
  const written = serialize(read)
  const expected = (canonical ?? raw).join(', ')
  if (written === expected || (canFail && canonical === undefined)) return 'right'
  // JavaScript has one type of number, so 1.0 is written as 1
  return written === expected.replace(/(\d)\.0+(?!\d)/g, '$1') ? 'explained' : `written as ${written}`
}

/** Runs all files of the folder, and prints what is otherwise. Returns the counts. */
export const runStructuredFields = (folder) => {
  let [cases, right, explained, files] = [0, 0, 0, 0]
  for (const name of readdirSync(folder).filter((one) => one.endsWith('.json'))) {
    const tests = JSON.parse(readFileSync(join(folder, name), 'utf8'))
    if (!Array.isArray(tests)) continue
    files++
    for (const test of tests) {
      cases++
      const outcome = outcomeOf(test)
      if (outcome === 'right') right++
      else if (outcome === 'explained') explained++
      else console.log(`  ${name} ${test.name}: ${JSON.stringify(test.raw)}: ${outcome}`)
    }
  }
  console.log(
    `structured fields: ${right} of ${cases} in ${files} files; ${explained} are decimals such as 1.0, written as 1`,
  )
  return { cases, right, explained, files }
}
