/**
 * Wrong and hostile credentials, as fast-check arbitraries.
 */
import fc, { type Arbitrary } from 'fast-check'
import { notoriousTexts } from '../attacks/notoriousTexts.js'

/** Secrets of at least 16 letters and digits: too long to be in a response by chance. */
export const secrets = (): Arbitrary<string> => fc.stringMatching(/^[A-Za-z0-9]{16,40}$/)

/**
 * Hostile credentials: the notorious ones, and any bytes that a header can carry.
 */
export const hostileTexts = (): Arbitrary<string> =>
  fc.oneof(
    fc.constantFrom(...notoriousTexts),
    // RFC 9110 §5.5: what a field can contain
    fc.string({ unit: fc.constantFrom(...fieldCharacters), maxLength: 40 }),
  )

const fieldCharacters = [...Array(256).keys()]
  .filter((code) => code === 9 || (code >= 32 && code !== 127))
  .map((code) => String.fromCharCode(code))
