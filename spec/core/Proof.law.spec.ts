/** C-02: the proofs of a session only grow, and none is of the future. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { addedTo, isProven, neededBy, proofFrom, type Proof } from '../../src/core/Proof.js'
import { pollute } from '../support/runs/pollute.js'

const NOW = 1e12
const method = fc.constantFrom('password', 'totp', 'oidc')
const given = fc.record(
  {
    method,
    at: fc.integer({ min: NOW - 1e6, max: NOW + 1e6 }),
    authTime: fc.integer({ min: NOW - 1e6, max: NOW + 1e6 }),
    issuer: fc.constantFrom('https://a.example', 'https://b.example'),
    subject: fc.constantFrom('anna', 'bob'),
  },
  { requiredKeys: ['method'] },
)
const wayOf = ({ method, issuer, subject }: Proof) => JSON.stringify([method, issuer, subject])

describe('C-02 proofs', () => {
  it('are never of the future, and the provider was never asked later', () => {
    fc.assert(
      fc.property(given, (one) => {
        const { at, authTime } = proofFrom('proof', one, NOW)
        expect(at).toBe(Math.min(one.at ?? NOW, NOW))
        expect(authTime ?? 0).toBeLessThanOrEqual(NOW)
      }),
    )
  })

  it('only grow: each way stays, with its newest time, once', () => {
    fc.assert(
      fc.property(fc.array(given, { maxLength: 12 }), (all) => {
        const made = all.map((one) => proofFrom('proof', one, NOW))
        let proofs: ReadonlyArray<Proof> = []
        const newest = new Map<string, number>()
        for (const proof of made) {
          const before = proofs
          proofs = addedTo(proofs, proof)
          newest.set(wayOf(proof), Math.max(newest.get(wayOf(proof)) ?? 0, proof.at))
          for (const one of before) expect(proofs.map(wayOf)).toContain(wayOf(one))
          expect(proofs).toHaveLength(newest.size)
          for (const one of proofs) expect(one.at).toBe(newest.get(wayOf(one)))
        }
      }),
    )
  })

  it('what was proven stays proven while it is fresh, whatever is added', () => {
    fc.assert(
      fc.property(fc.array(given, { minLength: 1, maxLength: 6 }), given, fc.nat(2e6), (all, more, maxAge) => {
        const proofs = all.reduce<ReadonlyArray<Proof>>((some, one) => addedTo(some, proofFrom('p', one, NOW)), [])
        const after = addedTo(proofs, proofFrom('p', more, NOW))
        for (const demand of [{ maxAge }, { methods: ['totp'] }, { methods: ['password', 'oidc'], maxAge }]) {
          if (isProven(proofs, demand, NOW)) expect(isProven(after, demand, NOW)).toBe(true)
        }
      }),
    )
  })

  it('of a provider are as old as it says, and of no known age if it says nothing', () => {
    fc.assert(
      fc.property(given, fc.nat(2e6), (one, maxAge) => {
        const proof = proofFrom('p', one, NOW)
        const done = proof.authTime ?? (proof.issuer === undefined ? proof.at : -Infinity)
        expect(isProven([proof], { maxAge }, NOW)).toBe(NOW - done <= maxAge)
        expect(isProven([proof], {}, NOW)).toBe(true)
      }),
    )
  })

  it.each([
    ['of this moment', { at: NOW }, { maxAge: 0 }, true],
    ['as old as may be', { at: NOW - 10 }, { maxAge: 10 }, true],
    ['older', { at: NOW - 11 }, { maxAge: 10 }, false],
    ['of a clock that is ahead', { at: NOW + 5000, authTime: NOW + 5000 }, { maxAge: 0 }, true],
    ['of the future', { at: NOW + 5001 }, {}, false],
    ['of a provider in the future', { at: NOW, authTime: NOW + 5001 }, { maxAge: 10 }, false],
    ['by another method', { at: NOW }, { methods: ['totp'] }, false],
  ])('one %s: %o suffices %o: %s', (_what, given, demand, expected) => {
    expect(isProven([{ method: 'password', ...given }], demand, NOW)).toBe(expected)
  })

  it('that are needed are named with their age in seconds; a member of a wrong type is refused', () => {
    expect(neededBy({ methods: ['totp'], maxAge: 60_000 })).toStrictEqual({ methods: ['totp'], maxAge: 60 })
    for (const wrong of [{ amr: ['pwd', 1] }, { at: NaN }, { method: '' }, { sid: 1 }]) {
      // Safe: JavaScript can write this
      expect(() => proofFrom('proof', { method: 'oidc', ...wrong } as never, NOW)).toThrow(TypeError)
    }
  })

  it('inherit no time', () => {
    pollute({ authTime: NOW })
    expect(isProven([{ method: 'oidc', issuer: 'https://a.example', at: NOW }], { maxAge: 1e6 }, NOW)).toBe(false)
  })
})
