/** The address that discovery finds is used only if it can be trusted (RFC 8414 §3.3, SECURITY: keys come by https). */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { discovering } from '../../src/jwt/fetching.js'

const issuer = 'https://login.example'

/** Asks at what a document says; the addresses that were asked. */
const askedAt = async (document: object): Promise<ReadonlyArray<string>> => {
  const fetch = vi.spyOn(globalThis, 'fetch').mockImplementation(async () => Response.json(document))
  onTestFinished(() => fetch.mockRestore())
  const asked: string[] = []
  const ask = discovering(issuer, 'jwks_uri', 1000)
  await ask(AbortSignal.timeout(5000), async (url) => asked.push(url)).catch((error: unknown) => {
    expect(String(error)).toMatch(/answered a discovery document/)
  })
  return asked
}

describe('an address that a discovery document names', () => {
  it('is asked', async () => {
    expect(await askedAt({ issuer, jwks_uri: 'https://keys.example/jwks' })).toEqual(['https://keys.example/jwks'])
  })

  it.each([
    undefined,
    null,
    7,
    '',
    '/jwks',
    'ftp://login.example/jwks',
    'http://login.example/jwks',
    // of an issuer that is asked by https
    'http://127.0.0.1/jwks',
  ])('is not asked if it is %s', async (address) => {
    expect(await askedAt({ issuer, jwks_uri: address })).toEqual([])
  })

  it.each([undefined, 'https://login.example/', 'https://LOGIN.example', 'https://evil.example', [issuer]])(
    'is not asked if the document is of %s',
    async (other) => {
      expect(await askedAt({ issuer: other, jwks_uri: 'https://keys.example/jwks' })).toEqual([])
    },
  )
})
