/** Who is signed in, as an operation sees it. */
import { expect } from 'vitest'
import type { Visitor } from './sessionsApp.js'

export const anna = 'anna@shop.example'

/** Expects that the operation at `/me` ran for this user. */
export const expectUser = async (visitor: Visitor, username: string): Promise<void> => {
  const { status, seen } = await visitor.ask('/me')
  expect([status, seen]).toMatchObject([200, [{ username }]])
}

/** Expects that no guarded operation runs. */
export const expectAnonymousAt = async (visitor: Visitor): Promise<void> => {
  for (const path of ['/me', '/vault']) {
    const { status, seen } = await visitor.ask(path)
    expect([path, status, seen]).toEqual([path, 401, []])
  }
}
