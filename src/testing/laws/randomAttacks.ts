/**
 * Attacks with random credentials, in random requests.
 */
import fc, { type Arbitrary } from 'fast-check'
import { informedAttacks, plain, unknownIn, type Attack, type Target } from '../attacks/Attack.js'
import { named, putting, valuesAt } from '../request/CredentialLocation.js'
import { mergeRequests } from '../request/RequestSpec.js'
import { hostileTexts, secrets } from './credentials.js'
import { requestSpecs } from './requestSpecs.js'

/** Attacks with random credentials in random requests. */
export const randomAttacks = (target: Target): Arbitrary<Attack> => {
  const { locations, valid } = target
  const nothing = fc.constant<Attack>({ what: 'no credential', spec: {}, secrets: [] })
  const at = locations.map((place) =>
    fc.oneof(
      secrets().map((secret) => unknownIn(place, secret)),
      hostileTexts()
        .filter((text) => valid.every((one) => !valuesAt(place, one).includes(plain(place, text))))
        .map((text) => ({
          what: `a hostile credential in ${named(place)}`,
          spec: putting(place, [text], {}),
          secrets: [],
        })),
    ),
  )
  const informed = informedAttacks(target)
  const attack = fc.oneof(nothing, ...at, ...(informed.length > 0 ? [fc.constantFrom(...informed)] : []))
  return fc
    .tuple(requestSpecs(), attack)
    .map(([about, { spec, ...rest }]) => ({ ...rest, spec: mergeRequests(about, spec) }))
}
