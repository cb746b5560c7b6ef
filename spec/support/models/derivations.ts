/**
 * Counts the derivations of password hashes in this process. Their time is not measured, because it depends on the
 * machine.
 */
import { hash } from 'koa-with-auth/passwords'

type Derive = (password: Buffer, salt: Buffer, cost: object, length: number) => Promise<Buffer>

/** The runs of Argon2id during `act`, and the passwords that waited in the queue. */
export const derivations = async (act: () => unknown) => {
  // The first hash finds out which implementation exists
  await hash('a password')
  // Safe: what `passwords.ts` shares between copies of the package
  const shared = Reflect.get(globalThis, Symbol.for('koa-with-auth/passwords')) as {
    argon2: Promise<Derive | undefined>
    line: (work: () => Promise<unknown>) => Promise<unknown>
  }
  const { argon2, line } = shared
  const derive = await argon2
  if (derive === undefined) throw new Error('no Argon2id: npm install @node-rs/argon2')
  const runs: { salt: number; cost: object; length: number }[] = []
  let lined = 0
  shared.argon2 = Promise.resolve((password, salt, cost, length) => {
    runs.push({ salt: salt.length, cost, length })
    return derive(password, salt, cost, length)
  })
  shared.line = (work) => {
    lined++
    return line(work)
  }
  try {
    await act()
  } finally {
    Object.assign(shared, { argon2, line })
  }
  return { runs, lined }
}
