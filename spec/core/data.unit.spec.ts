/**
 * Data that requests share is frozen, and fields are own ones. Errors of two copies of the package, such as of `import` and `require`, are
 * alike; and what warnings say of an error.
 */
import { readFileSync } from 'node:fs'
import { AuthEndedError, UnavailableError } from 'koa-with-auth'
import { SignInRefused } from 'koa-with-auth/sessions'
import { describe, expect, it, afterEach, onTestFinished, vi } from 'vitest'
import {
  ageOf,
  deepFreeze,
  errorInWords,
  escapeHtml,
  frozenCopy,
  hasDots,
  jsonFields,
  ownField,
  ownOrGetter,
  steadyClock,
  thisMoment,
} from '../../src/core/data.js'

// What requests share is frozen deeply. Instances of classes are not changed.
describe('freezing', () => {
  class Account {
    name = 'anna'
  }
  const hidden = Symbol('hidden')
  const bare = () => Object.assign(Object.create(null) as object, { a: { b: 1 } })

  describe('deepFreeze', () => {
    it.each([
      ['an object', () => ({ a: { b: 1 } })],
      ['an array', () => [[1], { a: 1 }]],
      ['an object without a prototype', bare],
      ['a property whose key is a symbol', () => ({ [hidden]: { a: 1 } })],
    ])('freezes %s', (_description, make) => {
      const value = deepFreeze(make())
      for (const part of [value, ...Reflect.ownKeys(value).map((key): unknown => Reflect.get(value, key))]) {
        expect(Object.isFrozen(part)).toBe(true)
      }
    })

    it.each([new Account(), new Error('bug'), /a/, new Map(), () => true])('does not change %o', (value) => {
      const { inside } = deepFreeze({ inside: value })
      expect(inside).toBe(value)
      expect(Object.isFrozen(inside)).toBe(false)
    })

    it('accepts null', () => {
      expect(deepFreeze({ a: null })).toStrictEqual({ a: null })
    })
  })

  describe('frozenCopy', () => {
    it.each([
      ['an object', { a: { b: 1 } }],
      ['an array', [[1], { a: 1 }]],
      ['null', null],
    ])('of %s is frozen, and the original is not', (_description, original) => {
      const copy = frozenCopy(original)
      expect(copy).toStrictEqual(original)
      expect([Object.isFrozen(copy), Object.isFrozen(original)]).toStrictEqual([true, original === null])
    })

    it('of an object without a prototype has its properties', () => {
      expect(frozenCopy(bare())).toEqual({ a: { b: 1 } })
    })

    it('does not change instances of classes', () => {
      const account = new Account()
      expect(frozenCopy({ account }).account).toBe(account)
      expect(Object.isFrozen(account)).toBe(false)
    })
  })
})

// The own fields of an object, and getters of its class. What a merge put on a prototype does not count.
describe('own fields', () => {
  class Account {
    level = 9
    get isStaff() {
      return this.level > 5
    }
    set note(_written: unknown) {}
    find() {}
  }
  class Guest extends Account {}
  // What a merge writes, on the prototype of a class or of all objects
  Object.assign(Account.prototype, { merged: true })
  class Hiding extends Account {}
  Object.defineProperty(Hiding.prototype, 'isStaff', { value: true })
  const bare: object = Object.assign(Object.create(null) as object, { isStaff: true })

  afterEach(() => {
    Reflect.deleteProperty(Object.prototype, 'polluted')
  })

  it.each<[string, object, string, own: unknown, orGetter?: unknown]>([
    ['its own value', { isStaff: true }, 'isStaff', true, true],
    ['a value of an object without a prototype', bare, 'isStaff', true, true],
    ['nothing', {}, 'isStaff', undefined],
    ['nothing in an object without a prototype', bare, 'isSuperuser', undefined],
    ['a getter of its class, which sees it', Object.assign(new Account(), { level: 1 }), 'isStaff', undefined, false],
    ['a getter of a superclass', new Guest(), 'isStaff', undefined, true],
    ['a value on the prototype of its class', new Account(), 'merged', undefined],
    ['a value that hides a getter of a superclass', new Hiding(), 'isStaff', undefined],
    ['a method of its class', new Account(), 'find', undefined],
    ['a setter of its class', new Account(), 'note', undefined],
    ['a method that all objects inherit', {}, 'toString', undefined],
    ['a getter that all objects inherit', {}, '__proto__', undefined],
  ])('%s: what ownField finds, and what ownOrGetter finds', (_rule, object, name, own, orGetter) => {
    expect([ownField(object, name), ownOrGetter(object, name)]).toStrictEqual([own, orGetter])
  })

  it.each([
    { value: true, configurable: true },
    { get: () => true, configurable: true },
  ])('ownField and ownOrGetter ignore a polluted Object.prototype: %o', (property) => {
    Object.defineProperty(Object.prototype, 'polluted', property)
    for (const object of [{}, new Account(), new Guest(), []]) {
      expect([ownField(object, 'polluted'), ownOrGetter(object, 'polluted')]).toStrictEqual([undefined, undefined])
    }
  })
})

describe('texts of strangers', () => {
  it.each(['[]', 'null', '1', '"a"', '{', ''])('jsonFields: %s is no record', (text) => {
    expect(jsonFields(text)).toBe(undefined)
  })

  it('jsonFields inherits nothing', () => {
    expect(Object.getPrototypeOf(jsonFields('{"a":1}'))).toBe(null)
  })

  it.each([
    ['/a/./b', true],
    ['/..', true],
    ['/a/%2E%2e/b', true],
    ['/a\\b', true],
    ['/a/.b/...', false],
  ])('hasDots of %s: %s', (path, expected) => expect(hasDots(path)).toBe(expected))

  it('escapeHtml leaves no character that ends a text or an attribute', () => {
    expect(escapeHtml(`a&<>"'\u2028\u2029`)).toBe('a&#38;&#60;&#62;&#34;&#39;&#8232;&#8233;')
  })
})

it('a clock that is set back makes nothing younger, and one that is set forward no moment later', () => {
  vi.useFakeTimers({ now: 1_000_000, toFake: ['Date', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const [since, clock] = [thisMoment(), steadyClock()]
  vi.advanceTimersByTime(10)
  vi.setSystemTime(500_000)
  expect([ageOf(since), clock()]).toStrictEqual([10, 500_000])
  vi.setSystemTime(2_000_000)
  expect([ageOf(since), clock()]).toStrictEqual([1_000_000, 1_000_010])
})

describe('the codes of errors', () => {
  const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
  const codesIn = (text: string) => [...new Set(text.match(/\bERR_[A-Z_]+\b/g))].sort()

  it('are a closed union, and the guide has each of them', () => {
    const [, union = ''] = /type ErrorCode =([^]*?)\n\n/.exec(read('src/core/data.ts')) ?? []
    expect(codesIn(union)).toHaveLength(11)
    expect(codesIn(read('examples/guides/failures.md'))).toEqual(codesIn(union))
  })
})

describe.each([
  [AuthEndedError, 'ERR_AUTH_ENDED'],
  [SignInRefused, 'ERR_SIGN_IN_REFUSED'],
  [UnavailableError, 'ERR_AUTH_UNAVAILABLE'],
])('%s', (type, code) => {
  it('has an error of another copy as its instance, and no other error', () => {
    const ofAnother = Object.assign(new Error('of another copy'), { code })
    expect([ofAnother instanceof type, new Error('own') instanceof type]).toEqual([true, false])
    for (const one of [undefined, null, code, 7]) expect((one as unknown) instanceof type).toBe(false)
  })
})

it('a class of the application is compared as usual', () => {
  class Down extends UnavailableError {}
  const [own, other] = [new Down('own'), new UnavailableError('other')]
  expect([own instanceof Down, own instanceof UnavailableError, other instanceof Down]).toEqual([true, true, false])
})

describe('an error in words', () => {
  const named = (name: string, message: string, code?: unknown) => Object.assign(new Error(message), { name, code })
  const secret = 'Top-Secret-Value'

  it.each<[what: string, error: unknown, words: string]>([
    ['a string', secret, 'not an Error'],
    ['a message', named('Error', 'down'), 'Error: down'],
    ['a code', named('Error', 'down', 'ECONNREFUSED'), 'Error ECONNREFUSED: down'],
    ['a code that is a number', named('Error', 'down', 5), 'Error: down'],
    ['a secret in the message', named('Error', `no ${secret}`, 'E1'), 'Error E1'],
    ['a secret in other letters, and encoded', named('Error', 'no topsecret%20value'), 'Error'],
    ['the beginning of a secret', named('Error', 'no topsecret'), 'Error: no topsecret'],
    ['16 letters of a long secret', named('Error', 'no another-secret of a'), 'Error'],
    ['a secret in the name', named(secret, 'down'), 'an Error'],
    [
      'getters that throw',
      new Proxy(new Error('down'), {
        get: () => {
          throw new Error('no')
        },
      }),
      'an Error',
    ],
    ['a line break', named('Error', 'a\nb\u2028c'), 'Error: a\\u{a}b\\u{2028}c'],
    ['a long message', named('Error', 'a'.repeat(2000)), `Error: ${'a'.repeat(1000 - 'Error: '.length)}`],
  ])('%s', (_what, error, words) => {
    expect(errorInWords(error, ['', secret, 'Another-Secret-of-a-Shop'])).toBe(words)
  })

  it('in production has no message', () => {
    vi.stubEnv('NODE_ENV', 'production')
    onTestFinished(() => void vi.unstubAllEnvs())
    expect(errorInWords(named('Error', 'down', 'E1'))).toBe('Error E1')
  })
})
