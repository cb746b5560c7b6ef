/** Describes the layers of a router in words: the demand of each guard, and the functions around it. */
import type { RouterInstance } from '@koa/router'
import { option as O } from 'fp-ts'
import { also, authenticator, Challenge, type Authenticator } from 'koa-with-auth'
import { expect } from 'vitest'
import * as Requirement from '../../../src/core/Requirement.js'
import { challengesOf } from '../../../src/core/Description.js'
import { guardFor } from '../../../src/koa/guard.js'
import { isGuard, isWritten } from '../../../src/koa/layer.js'

/** A handler. */
export const handle = (): void => {}
/** Middleware. */
export const go = (_ctx: unknown, next: () => Promise<unknown>) => next()

const credential = (scheme: string) =>
  authenticator({
    challenge: Challenge.make(scheme),
    ambient: false,
    extract: () => O.none,
    authenticate: () => expect.unreachable(),
  })
/** Requirements, by the names of their schemes. */
export const [a, b] = [Requirement.guardedBy(credential('a')), Requirement.guardedBy(credential('b'))]
export const [alsoA, alsoB, alsoC] = [also(credential('a')), also(credential('b')), also(credential('c'))]
export const { open } = Requirement

/** A guard for an operation. */
export const on = (requirement: Requirement.Requirement): never =>
  guardFor(requirement, { levels: ['operation'] }) as never

/** The functions of each layer by name, in order, without observers; a guard by its demand. */
export const names = ({ stack }: RouterInstance): string[] =>
  stack.map((layer) =>
    (layer.stack as ReadonlyArray<Function>)
      .filter(isWritten)
      .map((f) => (isGuard(f) ? demandOf(f.requirement) : f === handle ? 'handle' : f === go ? 'go' : nameOf(f)))
      .join(' '),
  )
const demandOf = (requirement: Requirement.Requirement): string => {
  if (requirement._tag === 'Also') return `also:${requirement.authenticators.map(schemes).join('+')}`
  return requirement._tag === 'Require' ? schemes(requirement.authenticator) : 'open'
}
const schemes = ({ description }: Authenticator<unknown>): string =>
  challengesOf(description)
    .map(({ scheme }) => scheme)
    .join('+')
const nameOf = (f: object): string => ('param' in f && typeof f.param === 'string' ? `hook:${f.param}` : 'kept')
