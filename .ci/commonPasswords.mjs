// `node .ci/commonPasswords.mjs`: writes src/passwords/commonPasswords.ts, the filter of common passwords.
// The passwords are those of the npm package @zxcvbn-ts/language-common (MIT; (c) Dan Wheeler, Dropbox, and zxcvbn-ts), which has
// them in the order in which they were found in leaks: the first 10,000 of at least 8 characters, and all of at least 15. It has few of
// 15 and more, so runs of digits and along the keys of a keyboard, which lead each list of long leaked passwords, are added.
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

const from = '@zxcvbn-ts/language-common'
const COUNT = 10_000
const LEAST = 8
const LONG = 15
const LONGEST_RUN = 20
const RUNS = [
  ...Array.from({ length: 10 }, (_, digit) => `${digit}`),
  '1234567890',
  '0123456789',
  '9876543210',
  '0987654321',
  'qwertyuiop',
  'qwertyuiopasdfghjklzxcvbnm',
  'asdfghjklqwertyuiop',
  '1q2w3e4r5t6y7u8i9o0p',
  'q1w2e3r4t5y6u7i8o9p0',
  '1qaz2wsx3edc4rfv5tgb',
  'qazwsxedcrfvtgbyhnuj',
]
/** The binary logarithm of how many other passwords there are for one that is taken for a common one. */
const BITS = 13

const lengthOf = (text) => [...text].length

const runs = RUNS.flatMap((run) =>
  Array.from({ length: LONGEST_RUN - LONG + 1 }, (_, at) => run.repeat(LONGEST_RUN).slice(0, LONG + at)).concat(
    lengthOf(run) > LONGEST_RUN ? run : [],
  ),
)

/** The common passwords, the commonest first. */
export const commonPasswords = () => {
  const list = createRequire(import.meta.url)
    .resolve(from)
    .replace(/dist\/.*$/, 'src/passwords.json')
  const all = JSON.parse(readFileSync(list, 'utf8')).map((one) => one.normalize('NFC').toLowerCase())
  const enough = [...new Set(all)].filter((one) => lengthOf(one) >= LEAST)
  const long = enough.slice(COUNT).filter((one) => lengthOf(one) >= LONG)
  return [...new Set([...enough.slice(0, COUNT), ...long, ...runs])]
}

// The differences of sorted numbers, in a Rice code: the quotient in ones and a zero, then the remainder in BITS bits
const coded = (numbers) => {
  let bits = ''
  let before = 0
  for (const one of numbers) {
    const difference = one - before
    before = one
    bits += `${'1'.repeat(difference >>> BITS)}0${(difference % 2 ** BITS).toString(2).padStart(BITS, '0')}`
  }
  const bytes = bits.match(/.{1,8}/g).map((byte) => Number.parseInt(byte.padEnd(8, '1'), 2))
  return Buffer.from(bytes).toString('base64')
}

/** The text of the module. */
export const commonModule = () => {
  const all = commonPasswords()
  const size = all.length * 2 ** BITS
  const numbers = all.map((one) => createHash('sha256').update(one).digest().readUInt32BE() % size)
  return `/** The filter of common passwords: made by \`.ci/commonPasswords.mjs\`, which says of what. */
export const commonFilter = {
  size: ${size},
  bits: ${BITS},
  data: '${coded([...new Set(numbers)].toSorted((one, other) => one - other))}',
}
`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(fileURLToPath(new URL('../src/passwords/commonPasswords.ts', import.meta.url)), commonModule())
}
