/** A password changes during a sign-in with the old one: the check after `logIn` undoes the sign-in. */
import { describe, expect, it } from 'vitest'
import { at, expectAnonymous, expectSignedIn, sessionsApp } from '../support/sites/sessionsApp.js'

const anna = { username: 'anna', isActive: true }

/** An application whose sign-in lets the password change at the time `when`, after it was verified. */
const signingIn = async (when: 'before logIn' | 'after logIn' | 'never') => {
  let password = 'old'
  const made = await sessionsApp(undefined, {
    below: (app, { logIn, logOutEverywhere }) => {
      const change = async () => {
        password = 'new'
        await logOutEverywhere('anna')
      }
      app.use(
        at('/sign-in', async (ctx) => {
          const verified = password
          if (when === 'before logIn') await change()
          await logIn(ctx, anna)
          if (when === 'after logIn') await change()
          if (password !== verified) ctx.throw(403)
        }),
      )
    },
  })
  return made.visitor()
}

describe('a sign-in whose password changes', () => {
  it.each(['before logIn', 'after logIn'] as const)('%s is undone', async (when) => {
    const thief = await signingIn(when)
    expect((await thief.post('/sign-in')).status).toBe(403)
    expect(thief.cookies.get('session')).toBeUndefined()
    await expectAnonymous(thief)
  })

  it('never is kept', async () => {
    const owner = await signingIn('never')
    await owner.post('/sign-in')
    await expectSignedIn(owner, anna)
  })
})
