/** The record of a sign-in in a session. */
import { expect, it } from 'vitest'
import { bind, holds, SignInReports, verifier } from '../../src/sessions/SignIn.js'

const binding = { keys: ['a key of at least 32 characters, for tests'], name: 'shop', sessionId: 'one' }
const signIn = { id: 'anna', at: 1, stamp: 'a stamp', details: '{"proofs":[]}' }
const record = bind(signIn, binding)

it('a session holds a record only if each part of it is the same', () => {
  expect(holds({ auth: { ...record } }, record)).toBe(true)
  expect(holds({}, record)).toBe(false)
  const others = { id: 'bert', at: 2, stamp: '', details: undefined, mac: 'other' }
  for (const [name, other] of Object.entries(others)) {
    expect(holds({ auth: { ...record, [name]: other } }, record), name).toBe(false)
  }
})

const stored = { key: 'key', text: 'text' }
const verified = (session: object, to: typeof binding) => verifier()(stored, session, to)

it('a record is genuine only if each part of it, and what it is bound to, is the same', () => {
  expect(verified({ auth: record }, binding)).toStrictEqual({ auth: record, key: 'first' })
  const others = { id: 'bert', at: 2, stamp: '', details: undefined, mac: 'other' }
  for (const [name, other] of Object.entries(others)) {
    expect(verified({ auth: { ...record, [name]: other } }, binding), name).toBeUndefined()
  }
  for (const [name, other] of Object.entries({ keys: ['k'.repeat(40)], name: 'shops', sessionId: 'two' })) {
    expect(verified({ auth: record }, { ...binding, [name]: other }), name).toBeUndefined()
  }
})

it('a record is verified once, while its key, its text and the signing keys are the same', () => {
  const [verify, keys] = [verifier(), [...binding.keys]]
  const first = verify(stored, { auth: record }, { ...binding, keys })
  expect(first).toStrictEqual({ auth: record, key: 'first' })
  const forged = { auth: { ...record, id: 'bert' } }
  expect(verify(stored, forged, { ...binding, keys: [...keys] })?.auth).toBe(first?.auth)
  expect(verify({ ...stored, key: 'another' }, forged, { ...binding, keys })).toBeUndefined()
  expect(verify({ ...stored, text: 'another' }, forged, { ...binding, keys })).toBeUndefined()
  keys.unshift('k'.repeat(40))
  expect(verify(stored, forged, { ...binding, keys })).toBeUndefined()
  expect(verify(stored, { auth: record }, { ...binding, keys })?.key).toBe('older')
  keys.pop()
  expect(verify(stored, { auth: record }, { ...binding, keys })).toBeUndefined()
  // it is one of the thousand that were used last
  const kept = verifier()
  for (let at = 0; at <= 1000; at++) kept({ ...stored, key: `${at}` }, { auth: record }, binding)
  expect([0, 1].map((at) => kept({ ...stored, key: `${at}` }, forged, binding)?.auth)).toEqual([undefined, record])
})

it('the end of a session is reported once, of the thousand that ended last', () => {
  const reports = new SignInReports('shop')
  const first = [0, 0, ...Array(1000).keys(), 1000, 0].map((at) => reports.isFirst(`${at}`))
  expect([first.slice(0, 4), first.slice(-2)]).toEqual([
    [true, false, false, true],
    [true, true],
  ])
})
