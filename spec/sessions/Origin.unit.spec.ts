/** The public origin of an application for a request: one of its own, never one that a request says. */
import type { Request } from 'koa'
import { expect, it } from 'vitest'
import { originFor, originLike, type Origin } from '../../src/sessions/Origin.js'

const several = ['https://shop.example', 'https://shop.example:8443', 'http://other.example']
// Safe: nothing else of it is read
const requestTo = (host: string) => ({ host }) as Request

it.each<[Origin, string, string | undefined]>([
  ['https://shop.example', 'evil.example', 'https://shop.example'],
  [several, 'shop.example', 'https://shop.example'],
  [several, 'SHOP.Example:8443', 'https://shop.example:8443'],
  [several, 'shop.example:80', undefined],
  [several, 'evil.example', undefined],
  [({ host }) => several.find((one) => one.endsWith(host)), 'other.example', 'http://other.example'],
  [() => undefined, 'evil.example', undefined],
])('of %j, for the host %s, is %s', (origin, host, expected) => {
  expect(originFor(origin, requestTo(host))).toBe(expected)
})

it.each([null, '', 'evil.example', 'https://evil.example/path', 'https://*.evil.example', Promise.resolve('x')])(
  'a function that returns %s is a TypeError',
  (found) => {
    expect(() => originFor(() => found as never, requestTo('evil.example'))).toThrow(TypeError)
  },
)

it.each([[], '', 'shop.example', 'ftp://shop.example', 'https://shop.example/', 'https://*.example', ['x'], 7])(
  'the option %j is a TypeError',
  (option) => {
    expect(() => originLike('origin', option)).toThrow('origin must be the public origin')
  },
)
