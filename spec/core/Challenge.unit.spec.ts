/** Challenges: how they are written, and what cannot be a challenge. */
import { Challenge } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'

const { make, render } = Challenge

describe('render', () => {
  it.each([
    { description: 'B-05 the default realm', input: make('Bearer'), expected: 'Bearer realm="api"' },
    { description: 'its own realm', input: make('Bearer', { realm: 'pets' }), expected: 'Bearer realm="pets"' },
    { description: 'its own empty realm', input: make('Bearer', { realm: '' }), expected: 'Bearer realm=""' },
    {
      description: 'the realm is first, wherever it was given',
      input: make('Basic', { charset: 'UTF-8', realm: 'x' }),
      expected: 'Basic realm="x", charset="UTF-8"',
    },
    {
      description: 'B-05 only quotes and backslashes are escaped',
      input: make('ApiKey', { name: `a"\\'=,;` }),
      expected: `ApiKey realm="api", name="a\\"\\\\'=,;"`,
    },
    {
      description: 'a tab stays a tab',
      input: make('ApiKey', { name: 'a\tb' }),
      expected: 'ApiKey realm="api", name="a\tb"',
    },
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
    { description: 'an empty scheme', input: () => make(''), expected: /scheme/ },
    { description: 'a blank in the scheme', input: () => make('Api Key'), expected: /scheme/ },
    { description: 'B-05 a line break in the scheme', input: () => make('A\r\nB'), expected: /scheme/ },
    { description: 'a scheme with a trailing line break', input: () => make('A\n'), expected: /scheme/ },
    { description: 'a scheme outside of ASCII', input: () => make('Schlüssel'), expected: /scheme/ },
    { description: 'an invalid parameter name', input: () => make('A', { 'b c': '' }), expected: /"b c"/ },
    { description: 'an empty parameter name', input: () => make('A', { '': '' }), expected: /name ""/ },
    { description: 'B-05 CR in a value', input: () => make('A', { realm: 'a\rb' }), expected: /"realm"/ },
    { description: 'B-05 LF in a value', input: () => make('A', { realm: 'a\n' }), expected: /"realm"/ },
    { description: 'NUL in a value', input: () => make('A', { realm: '\0' }), expected: /"realm"/ },
    { description: 'B-05 a value outside of ASCII', input: () => make('A', { realm: 'é' }), expected: /"realm"/ },
    { description: 'a value that is not a string', input: () => make('A', { realm: 1 as never }), expected: /"realm"/ },
    { description: 'B-04 a name given twice', input: () => make('A', { a: '', A: '' }), expected: /given twice/ },
  ])('is a TypeError for $description', ({ input, expected }) => {
    expect(input).toThrow(TypeError)
    expect(input).toThrow(expected)
  })
})
