/** No name that went before 0.1.0 is left in what users read and copy. The guide of the changes has them all. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { repository } from '../support/projects/typecheck.js'

const guide = 'examples/guides/from-2217098.md'
const read = (path: string) => readFileSync(repository + path, 'utf8')

/** The code in the first column of the tables of the guide, as a reader would write it. */
const rows = read(guide)
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .map((line) => line.split(' | '))
  .flatMap(([before = '', now = '']) =>
    [...before.matchAll(/`([^`]+)`/g)].map(([, name = '']) => ({ name, before, now })),
  )

const listeners = rows
  .map(({ name }) => /^((?:on|check)[A-Z]\w+|lawsOf\w*)\(/.exec(name)?.[1])
  .filter((name) => name !== undefined)
const paths = rows.map(({ name }) => name).filter((name) => name.startsWith('koa-with-auth/'))
const moved = rows.filter(({ before }) => before.includes('of the root')).map(({ name, now }) => ({ name, now }))

const files = [
  'README.md',
  ...readdirSync(`${repository}examples`, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(?:md|ts|js|json|html)$/.test(file) && !/node_modules|\bdist\b/.test(file))
    .map((file) => `examples/${file}`),
].filter((file) => file !== guide)

const importsOf = (text: string) =>
  [...text.matchAll(/import (?:type )?\{([^}]*)\} from '(koa-with-auth[\w/-]*)'/g)].flatMap(([, names = '', from]) =>
    names.split(',').map((name) => ({ name: name.replace(/\btype\b|\bas \w+/g, '').trim(), from })),
  )

describe('a name that went', () => {
  it('is in the guide', () => {
    expect([listeners.length, paths.length > 6, moved.length > 15]).toEqual([20, true, true])
    expect(files.length).toBeGreaterThan(80)
  })

  it.each(files)('is not in %s', (file) => {
    const text = read(file)
    const gone = [
      ...listeners.map((name) => new RegExp(`\\b${name}\\b`)),
      ...paths.map((path) => new RegExp(`${path}\\b`)),
    ]
    expect(gone.filter((name) => name.test(text))).toStrictEqual([])
    const fromRoot = importsOf(text).filter(({ from }) => from === 'koa-with-auth')
    expect(fromRoot.filter(({ name }) => moved.some((one) => one.name === name))).toStrictEqual([])
  })

  it('has a new one that exists', async () => {
    const [root, fp, sessions] = await Promise.all([
      import('koa-with-auth'),
      import('koa-with-auth/fp'),
      import('koa-with-auth/sessions'),
    ])
    for (const { name, now } of moved) {
      const [first = '', member] = name.split('.')
      const found: unknown = Reflect.get(now.includes('/sessions') ? sessions : fp, first)
      expect(member === undefined ? found : Reflect.get(found as object, member), name).toBeDefined()
      expect(root, name).not.toHaveProperty(first)
    }
  })
})
