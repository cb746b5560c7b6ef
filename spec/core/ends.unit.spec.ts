/** When a credential ends, and the records that say so. */
import { endsSession, on } from 'koa-with-auth/events'
import { describe, expect, it } from 'vitest'
import { NamedEnd, PrincipalSource } from '../../src/core/ends.js'
import { recordDigest, report } from '../../src/core/events.js'

describe('the end of a principal', () => {
  it.each([
    ['a Date', { expiresAt: new Date(1000) }, 1000],
    ['milliseconds', { expiresAt: 1000 }, 1000],
    ['an invalid Date', { expiresAt: new Date(NaN) }, undefined],
    ['text', { expiresAt: '1000' }, undefined],
    ['nothing', {}, undefined],
    ['no object', 'anna', undefined],
  ])('is %s', (_what, principal, at) => {
    expect(new PrincipalSource(principal).endFor()?.at).toBe(at)
  })

  it('comes before its time if it is revoked, which is asked each time', () => {
    let isRevoked = false
    const end = new NamedEnd(1000, 'a', () => isRevoked)
    expect([end.before, end.named(), new NamedEnd(1, 'b').before]).toStrictEqual([undefined, 'a', undefined])
    isRevoked = true
    expect(end.before).toBe('revoked')
  })
})

describe('a record', () => {
  it.each([
    ['a session', { user: 'u', session: 's' }, [true, false, false]],
    ['all sessions of a user', { user: 'u' }, [true, true, false]],
  ])('that %s has ended concerns no other one', (_what, given, expected) => {
    const record = { reason: 'logOut', ...given } as Parameters<typeof endsSession>[0]
    const signIns = ['s u', 't u', 't v'].map((one) => ({ session: one.charAt(0), user: one.charAt(2) }))
    expect(signIns.map((signIn) => endsSession(record, signIn))).toStrictEqual(expected)
  })

  it('is frozen, and made for a subscriber alone', () => {
    const seen: unknown[] = []
    const refused = { event: 'revoked', id: 'k' } as const
    report('api-key')(expect.unreachable)
    const off = on('api-key', (record) => seen.push(record, Object.isFrozen(record)))
    report('api-key')(() => ({ ...refused }))
    off()
    expect(seen).toStrictEqual([refused, true])
  })

  it('names a user and a session of one id differently', () => {
    const names = [recordDigest('user', 'a', 'b'), recordDigest('session', 'a', 'b'), recordDigest('user', 'ab')]
    expect(new Set(names).size).toBe(3)
  })
})
