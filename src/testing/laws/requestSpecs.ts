/**
 * Requests without a credential, as a fast-check arbitrary.
 */
import fc, { type Arbitrary } from 'fast-check'
import { decidingNothing, HOST } from '../request/fixedRequests.js'
import type { RequestSpec } from '../request/RequestSpec.js'

/**
 * Requests without a credential: safe and unsafe methods, pages of this and of other sites, fields that must not decide
 * anything.
 */
export const requestSpecs = (): Arbitrary<RequestSpec> =>
  fc
    .record({
      method: fc.constantFrom('GET', 'HEAD', 'POST', 'DELETE'),
      site: fc.constantFrom(undefined, 'same-origin', 'same-site', 'cross-site', 'none'),
      origin: fc.constantFrom(undefined, `https://${HOST}`, 'https://other.example', 'null'),
      beside: fc.option(fc.constantFrom(...decidingNothing), { nil: undefined, freq: 3 }),
    })
    .map(({ method, site, origin, beside }) => ({
      method,
      fields: [
        ['Host', HOST],
        ...(site === undefined ? [] : [['Sec-Fetch-Site', site] as const]),
        ...(origin === undefined ? [] : [['Origin', origin] as const]),
        ...(beside === undefined ? [] : [beside]),
      ],
    }))
