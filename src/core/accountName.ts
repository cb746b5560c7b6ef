/**
 * What an account's name is counted as: one form for all spellings that some database, directory or form takes for the same name.
 * If a spelling found the same account but had a separate count, it would allow more guesses.
 *
 * It is stricter than most: letter case, accents, letters that a collation sorts as another (`ø`, `æ`, `①`), invisible
 * characters, blanks around the name and runs of blanks make no other name, nor does what comes after 256 characters. Two users
 * whose names are the same by that share a count, and nothing else: the form is for counting, never for finding an account.
 */
const MAX_LENGTH = 256

/** What a name is counted as. */
export const accountName = (name: string): string => {
  const start = name.slice(0, MAX_LENGTH)
  return plain.test(start) ? start.toLowerCase() : ofAnyScript(start)
}

const plain = /^[!-~]*$/

const ofAnyScript = (name: string): string =>
  name
    .normalize('NFKD')
    // one character can become eighteen
    .slice(0, MAX_LENGTH)
    .replace(/[^\S\ufeff]+/g, ' ')
    .replace(/[·\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, '')
    .replace(/[^ -~]/gu, latin)
    // both, so that letters with one case alone meet those with two
    .toUpperCase()
    .toLowerCase()
    .trim()

const letters = [...'0123456789abcdefghijklmnopqrstuvwxyz']
let collator: Intl.Collator | undefined

// What databases take a character for where they ignore case and accents: nothing, a letter, two letters, or itself
const latin = (character: string): string => {
  const { compare } = (collator ??= new Intl.Collator('und', { sensitivity: 'base' }))
  if (compare(character, '') === 0) return ''
  const first = lastUpTo(character, '', compare)
  if (first === '') return character
  if (compare(first, character) === 0) return first
  const both = lastUpTo(character, first, compare)
  return compare(both, character) === 0 ? both : character
}

// The last of the letters, each behind `before`, that is not sorted behind the character; `before` where all are
const lastUpTo = (character: string, before: string, compare: Intl.Collator['compare']): string => {
  let [low, high] = [0, letters.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (compare(before + letters[middle], character) <= 0) low = middle + 1
    else high = middle
  }
  return before + (letters[low - 1] ?? '')
}
