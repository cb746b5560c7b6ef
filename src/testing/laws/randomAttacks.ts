/** Attacks with random credentials, in random requests. */
import fc, { type Arbitrary } from 'fast-check'
import { inWords, putting, valuesAt } from '../CredentialLocation.js'
import { informedAttacks, plain, unknownIn, type Attack, type Target } from '../attacks.js'
import { mergeRequests } from '../requests.js'
import { hostileTexts, requestSpecs, secrets } from './random.js'

/** Attacks with random credentials in random requests. */
export const randomAttacks = (target: Target): Arbitrary<Attack> => {
  const { locations, valid } = target
  const nothing = fc.constant<Attack>({ what: 'no credential', spec: {}, secrets: [] })
  const at = locations.map((location) => {
    const isWrong = (text: string): boolean =>
      valid.every((one) => !valuesAt(location, one).includes(plain(location, text)))
    return fc.oneof(
      secrets()
        .filter(isWrong)
        .map((secret) => unknownIn(location, secret)),
      hostileTexts()
        .filter(isWrong)
        .map((text) => ({
          what: `a hostile credential in ${inWords(location)}`,
          spec: putting(location, [text], {}),
          secrets: [],
        })),
    )
  })
  const informed = informedAttacks(target)
  const attack = fc.oneof(nothing, ...at, ...(informed.length > 0 ? [fc.constantFrom(...informed)] : []))
  return fc
    .tuple(requestSpecs(), attack)
    .map(([about, { spec, ...rest }]) => ({ ...rest, spec: mergeRequests(about, spec) }))
}
