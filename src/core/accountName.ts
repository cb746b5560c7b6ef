/**
 * What an account's name is counted as: one form for all spellings that some database, directory or form takes for the
 * same name. If a spelling found the same account but had a separate count, it would allow more guesses.
 *
 * It is stricter than most databases. It ignores letter case, accents, invisible characters, blanks around the name,
 * repeated blanks, and everything after 256 characters. A letter that a collation sorts as another (`ø`, `æ`, `①`)
 * counts as that one. Two users whose names have the same form share a count, and nothing else: the form never finds an
 * account.
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
    // NFKD can turn one character into eighteen
    .slice(0, MAX_LENGTH)
    .replace(/[^\S\ufeff]+/g, ' ')
    .replace(/[·\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, '')
    .replace(/[^ -~]/gu, latin)
    // both, because some letters have only one case
    .toUpperCase()
    .toLowerCase()
    .trim()

const letters = [...'0123456789abcdefghijklmnopqrstuvwxyz']
let collator: Intl.Collator | undefined

// What databases that ignore case and accents take a character for: nothing, a letter, two letters, or itself
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
