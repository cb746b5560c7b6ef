/** The names of accounts, so that all spellings of one name have one count. */
const MAX_NAME_LENGTH = 256

/**
 * The form under which a name is counted.
 *
 * It is one form for all spellings that some database, directory or form takes for the same name. If a spelling found the same account but
 * had a separate count, it would allow more guesses.
 *
 * It is stricter than most databases. It ignores letter case, accents, invisible characters, blanks around the name and repeated blanks,
 * however many there are. Of the rest, it ignores everything after 256 characters. A letter that a collation sorts as another (`ø`,
 * `æ`, `①`) counts as that letter. Two users whose names have the same form share a count, and nothing else: the form never finds an account.
 */
const accountName = (name: string): string => (isPlainName(name) ? name.toLowerCase() : ofAnyScript(name))

const isPlainName = (name: string): boolean => name.length <= MAX_NAME_LENGTH && plainName.test(name)

const plainName = /^[!-~]*$/

// Invisible characters go before anything is cut. Otherwise each number of invisible characters would make another name
const ofAnyScript = (name: string): string =>
  latinized(
    decomposed(name.replace(isolated, ''))
      .replace(/[^\S\ufeff]/g, ' ')
      .replace(/[·\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, ''),
  )
    // both, because some letters have only one case
    .toUpperCase()
    .toLowerCase()
    .slice(0, MAX_NAME_LENGTH)
    .trim()

// The letters and marks of a name (NFKD). Unicode sorts the marks in a row one by one, which takes a time that grows with the square of
// their number. So a row is interrupted after 30 marks, as in stream-safe text (UAX #15 §13), by a character that does not count.
const decomposed = (name: string): string => name.replace(marks, '$&\u034f').normalize('NFKD')

// Also the voiced marks of half-width katakana, which NFKD makes marks of
const marks = /[\p{M}\uff9e\uff9f]{30}/gu

// Isolated Arabic vowel signs. NFKD would put a blank before each, but a collation ignores them
const isolated = /[\ufc5e-\ufc63\ufe70\ufe72\ufe74\ufe76\ufe78\ufe7a\ufe7c\ufe7e]/g

/**
 * Everything that a name is counted as. Some marks, such as U+0363, are a letter for a collation, and an accent for a program
 * that drops all marks. So a name that has one counts as both.
 */
export const accountNames = (name: string): readonly [string] | readonly [string, string] => {
  if (isPlainName(name)) return [name.toLowerCase()]
  const whole = ofAnyScript(name)
  const bare = accountName(decomposed(name).replace(/\p{M}/gu, ''))
  return bare === whole ? [whole] : [whole, bare]
}

// The start of a name that is long enough, in which each character is replaced as databases compare it. Each is looked up once
const latinized = (name: string): string => {
  const latinOf = new Map<string, string>()
  let start = ''
  for (const character of name) {
    if (character === ' ') {
      if (start !== '' && !start.endsWith(' ')) start += ' '
      continue
    }
    const found = character <= '~' ? character : (latinOf.get(character) ?? latin(character))
    latinOf.set(character, found)
    start += found
    if (start.length > MAX_NAME_LENGTH) break
  }
  return start
}

const letters = [...'0123456789abcdefghijklmnopqrstuvwxyz']
let collator: Intl.Collator | undefined

// A character as databases that ignore case and accents compare it: nothing, a letter, two letters, or itself
const latin = (character: string): string => {
  const { compare } = (collator ??= new Intl.Collator('und', { sensitivity: 'base' }))
  const both = lastUpTo(character, lastUpTo(character, '', compare), compare)
  return compare(both, character) === 0 ? both : character
}

// Adds the last letter to `before` with which it does not sort after the character; no letter if there is none
const lastUpTo = (character: string, before: string, compare: Intl.Collator['compare']): string => {
  let [low, high] = [0, letters.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (compare(before + letters[middle], character) <= 0) low = middle + 1
    else high = middle
  }
  return before + (letters[low - 1] ?? '')
}
