/** Each law of a ceremony is needed: a change of the code that breaks one is noticed. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { describe, expect, it } from 'vitest'
import { ceremonyLaws, type Make } from '../support/models/ceremonyModel.js'
import { repository } from '../support/projects/typecheck.js'

/** What is replaced, and by what; each string must be there as often as `times` says. */
interface Mutant {
  readonly from: string
  readonly to: string
  readonly times?: number
}

const mutants: Readonly<Record<string, ReadonlyArray<Mutant>>> = {
  'an id that was spent is spent again': [
    {
      from: 'if (!(await useTry(self, of, tries, remembered))) {',
      to: 'if (!(await useTry(self, of, tries, remembered)) && self.now() < 0) {',
    },
  ],
  'an outage counts as spent': [
    {
      from: 'if (await ids.use(tryOf(id, at), lifetime)) return true',
      to: 'if (await ids.use(tryOf(id, at), lifetime).catch(() => true)) return true',
    },
  ],
  'tries are not limited': [{ from: '`${id}.${at}`', to: '`${id}.${Math.random()}`' }],
  'a second right answer is in, too': [{ from: 'if (tries > 1 && !(await', to: 'if (tries > 9 && !(await' }],
  'what was finished checks another answer': [{ from: '{ length: tries }', to: '{ length: 0 }' }],
  'an id is forgotten before the handle ends': [
    { from: 'const remembered = until - self.now() + MARGIN', to: 'const remembered = 1000' },
  ],
  'any browser opens a handle': [
    { from: "derive(root, 'handle', name, kind, browser)", to: "derive(root, 'handle', name, kind)" },
    {
      from: "derive(root, 'handle', self.name, kind.name, browser)",
      to: "derive(root, 'handle', self.name, kind.name)",
    },
  ],
  'any kind opens a handle': [
    { from: "derive(root, 'handle', name, kind, browser)", to: "derive(root, 'handle', name, browser)" },
    { from: "derive(root, 'handle', self.name, kind.name, browser)", to: "derive(root, 'handle', self.name, browser)" },
  ],
  'another browser uses it up': [
    {
      from: 'if (opened === undefined) return unfinished(elsewhere)',
      to: "if (opened === undefined) {\n await self.ids.use('x', 1)\n return unfinished(elsewhere)\n }",
    },
  ],
  'no handle ends': [{ from: 'if (until <= self.now() &&', to: 'if (until <= 0 &&' }],
  'a handle is good at its end': [{ from: 'if (until <= self.now() &&', to: 'if (until < self.now() &&' }],
  'any user finishes': [{ from: 'content.subject !== subject)', to: 'content.subject === null)' }],
  'a user who is signed out finishes': [
    {
      from: '(subject === undefined || content.subject !== subject)',
      to: '(subject !== undefined && content.subject !== subject)',
    },
  ],
  'one salt for all': [{ from: 'const salt = randomId(16)', to: "const salt = 'salt'" }],
  'one secret for all purposes': [{ from: 'browser, salt, purpose)', to: 'browser, salt)' }],
  'only the newest key opens': [
    { from: 'for (const root of roots()) {', to: 'for (const root of roots().slice(0, 1)) {' },
  ],
  'a removed key still opens': [
    { from: 'for (const root of roots()) {', to: 'for (const root of (seen.push(...roots()), seen)) {' },
    {
      from: 'const bytesOf = (handle: unknown)',
      to: 'const seen: Buffer[] = []\nconst bytesOf = (handle: unknown)',
    },
  ],
  'a beginning writes': [
    {
      from: 'const salt = randomId(16)',
      to: 'const salt = randomId(16)\n await self.ids.use(salt, 1)',
    },
  ],
  'a handle has several spellings': [
    { from: "raw.toString('base64url') === handle", to: "raw.toString('base64url') !== ''" },
  ],
  'the return path is not checked': [{ from: 'returnTo: localPath(returnTo)', to: 'returnTo: String(returnTo)' }],
  'a proof may be of the future': [{ from: 'Math.min(checked.right.at ?? at, at)', to: 'checked.right.at ?? at' }],
  'a half whose sessions were ended goes on': [
    {
      from: 'if (!(await finishing.isGoingOn(content)))',
      to: 'if ((await finishing.isGoingOn(content)) === undefined)',
    },
  ],
  'an unbound kind signs in': [{ from: "bound === false ? ['reset', 'verify'] : ", to: '' }],
  'the intent of the handle does not count': [
    { from: 'if (!intentsOf(kind).includes(intent) ||', to: 'if (intentsOf(kind).length === 0 ||' },
  ],
  'used before differs from unknown': [
    {
      from: 'E.right(placeOf(content)) : again\n  }',
      to: "E.right(placeOf(content)) : unfinished('late')\n  }",
    },
  ],
  'completes before the check': [
    {
      from: 'if (E.isLeft(checked)) return checked',
      to: 'if (E.isLeft(checked)) {\n await finishing.complete({ proof: { method: "x", at: 0 } as never, before, intent, subject, stamp, returnTo, id })\n return checked\n }',
    },
  ],
}

// The files that are changed: the last one exports the ceremonies, and imports the others
const files = ['Kind', 'ceremony'].map((name) => `sign-in/${name}.ts`)
const source = files.map((file) => readFileSync(`${repository}src/${file}`, 'utf8')).join('\0')

// Safe: the module exports it
const { commonJsOf } = (await import(`${repository}.ci/bundle.mjs`)) as {
  readonly commonJsOf: (module: string, texts: Readonly<Record<string, string>>) => Promise<string>
}
const required = createRequire(`${repository}package.json`)

const built = async (changes: ReadonlyArray<Mutant>): Promise<Make> => {
  let text = source
  for (const { from, to, times = 1 } of changes) {
    expect([from, text.split(from).length - 1]).toEqual([from, times])
    text = text.replaceAll(from, () => to)
  }
  const texts = Object.fromEntries(text.split('\0').map((one, at) => [files[at]!, one]))
  const module: { ceremonies?: Make } = {}
  // eslint-disable-next-line @typescript-eslint/no-implied-eval, @typescript-eslint/no-unsafe-call -- it is our own module
  new Function('require', 'exports', await commonJsOf('sign-in/ceremony.ts', texts))(required, module)
  return module.ceremonies!
}

/** The first law that does not hold. */
const brokenBy = async (make: Make): Promise<string | undefined> => {
  for (const [law, hold] of Object.entries(ceremonyLaws)) {
    try {
      await hold(make)
    } catch {
      return law
    }
  }
  return undefined
}

describe('C-01 the laws of a ceremony', () => {
  it('hold for the code as it is', async () => {
    expect(await brokenBy(await built([]))).toBeUndefined()
  })

  it.each(Object.keys(mutants))('notice that %s', async (name) => {
    expect(await brokenBy(await built(mutants[name]!))).toBeDefined()
  })
})
