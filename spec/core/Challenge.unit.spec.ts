/** Challenges: how they are written, and what cannot be a challenge. */
import { Challenge } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { row } from '../support/models/row.js'

const { make, render } = Challenge

describe('render', () => {
  it.each([
    row('B-05 the default realm', make('Bearer'), 'Bearer realm="api"'),
    row('its own realm', make('Bearer', { realm: 'pets' }), 'Bearer realm="pets"'),
    row('its own empty realm', make('Bearer', { realm: '' }), 'Bearer realm=""'),
    row('the realm is first', make('Basic', { charset: 'UTF-8', realm: 'x' }), 'Basic realm="x", charset="UTF-8"'),
    row('B-05 quotes are escaped', make('ApiKey', { name: `a"\\'=,;` }), `ApiKey realm="api", name="a\\"\\\\'=,;"`),
    row('a tab stays a tab', make('ApiKey', { name: 'a\tb' }), 'ApiKey realm="api", name="a\tb"'),
  ])('$description', ({ input, expected }) => {
    expect(render('api')(input)).toBe(expected)
  })

  it('is a TypeError for a realm that is not valid', () => {
    for (const realm of ['a\n', 'é', undefined as never]) {
      expect(() => render(realm)).toThrow(
        new TypeError('Challenge: the parameter "realm" must be printable ASCII on one line'),
      )
    }
  })
})

describe('make', () => {
  it.each([
    row('a blank in the scheme', () => make('Api Key'), /scheme/),
    { description: 'an invalid parameter name', input: () => make('A', { 'b c': '' }), expected: /"b c"/ },
    { description: 'B-05 LF in a value', input: () => make('A', { realm: 'a\n' }), expected: /"realm"/ },
    { description: 'a value that is not a string', input: () => make('A', { realm: 1 as never }), expected: /"realm"/ },
    row('B-04 a name given twice', () => make('A', { a: '', A: '' }), /given twice/),
    row('B-04 a name given twice, in lower case last', () => make('A', { A: '', a: '' }), /given twice/),
  ])('is a TypeError for $description', ({ input, expected }) => {
    expect(input).toThrow(TypeError)
    expect(input).toThrow(expected)
  })
})
