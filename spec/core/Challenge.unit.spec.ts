/** Challenges: what they look like on the wire, and what cannot be one. */
import { Challenge } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'

const { make, render } = Challenge

describe('render', () => {
  it.each([
    { description: 'B-05 the realm is in', input: make('Bearer'), expected: 'Bearer realm="api"' },
    { description: 'its own realm', input: make('Bearer', { realm: 'pets' }), expected: 'Bearer realm="pets"' },
    { description: 'an empty realm of its own', input: make('Bearer', { realm: '' }), expected: 'Bearer realm=""' },
    {
      description: 'the realm first, wherever it was given',
      input: make('Basic', { charset: 'UTF-8', realm: 'x' }),
      expected: 'Basic realm="x", charset="UTF-8"',
    },
    {
      description: 'B-05 quotes and backslashes escaped, nothing else',
      input: make('ApiKey', { name: `a"\\'=,;` }),
      expected: `ApiKey realm="api", name="a\\"\\\\'=,;"`,
    },
    {
      description: 'no line break for a tab',
      input: make('ApiKey', { name: 'a\tb' }),
      expected: 'ApiKey realm="api", name="a\tb"',
    },
  ])('$description', ({ input, expected }) => {
    expect(render('api')(input)).toBe(expected)
  })

  it('TypeError for a realm that is no parameter', () => {
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
    { description: 'letters beyond ASCII in the scheme', input: () => make('Schlüssel'), expected: /scheme/ },
    { description: 'a parameter name that is no token', input: () => make('A', { 'b c': '' }), expected: /"b c"/ },
    { description: 'an empty parameter name', input: () => make('A', { '': '' }), expected: /name ""/ },
    { description: 'B-05 CR in a value', input: () => make('A', { realm: 'a\rb' }), expected: /"realm"/ },
    { description: 'B-05 LF in a value', input: () => make('A', { realm: 'a\n' }), expected: /"realm"/ },
    { description: 'NUL in a value', input: () => make('A', { realm: '\0' }), expected: /"realm"/ },
    { description: 'B-05 a value beyond ASCII', input: () => make('A', { realm: 'é' }), expected: /"realm"/ },
    { description: 'a value that is no text', input: () => make('A', { realm: 1 as never }), expected: /"realm"/ },
    { description: 'B-04 a name given twice', input: () => make('A', { a: '', A: '' }), expected: /given twice/ },
  ])('TypeError for $description', ({ input, expected }) => {
    expect(input).toThrow(TypeError)
    expect(input).toThrow(expected)
  })
})
