/** How long the tokens of a provider's answer are good. */
import { expect, it, onTestFinished, vi } from 'vitest'
import { grantedTokens } from '../../src/sign-in/oidc/TokenClient.js'

const NOW = 1_800_000_000_000

it.each<[unknown, number | undefined]>([
  [undefined, undefined],
  [0, undefined],
  [-1, undefined],
  [NaN, undefined],
  ['60', undefined],
  [0.5, NOW + 500],
  [1, NOW + 1000],
  [315_359_999, NOW + 315_359_999_000],
  // ten years, and more, are not believed
  [315_360_000, undefined],
  [Infinity, undefined],
])('expires_in %j is an end at %j', (seconds, until) => {
  vi.useFakeTimers({ toFake: ['Date'], now: NOW })
  onTestFinished(() => void vi.useRealTimers())
  const answer = { access_token: 'a', token_type: 'bearer', expires_in: seconds as number } as const
  expect(grantedTokens(answer)).toStrictEqual({ access: 'a', at: NOW, ...(until !== undefined && { until }) })
})
