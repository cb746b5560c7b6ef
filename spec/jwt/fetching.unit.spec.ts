/** The address that discovery finds is used only if it can be trusted (RFC 8414 §3.3, SECURITY: keys come by https). */
import { getEventListeners } from 'node:events'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { beforeAbort, bytesOf, discovering, fetchJson } from '../../src/jwt/fetching.js'

const issuer = 'https://login.example'

const answering = (answer: () => Response) => {
  const fetch = vi.spyOn(globalThis, 'fetch').mockImplementation(async () => answer())
  onTestFinished(() => fetch.mockRestore())
  return fetch
}

/** Asks at what a document says; the addresses that were asked. */
const askedAt = async (document: object): Promise<ReadonlyArray<string>> => {
  answering(() => Response.json(document))
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

it('an address is looked up again after a question that failed, because it may have changed', async () => {
  const fetch = answering(() => Response.json({ issuer, jwks_uri: 'https://keys.example/jwks' }))
  const ask = discovering(issuer, 'jwks_uri', 60_000)
  const { signal } = new AbortController()
  const well = () => ask(signal, async () => 'keys')
  expect([await well(), await well(), fetch.mock.calls.length]).toEqual(['keys', 'keys', 1])
  expect(fetch.mock.calls[0]?.[1]).toMatchObject({ headers: { Accept: 'application/json' } })
  await expect(ask(signal, () => Promise.reject(new Error('404')))).rejects.toThrow('404')
  expect([await well(), fetch.mock.calls.length]).toEqual(['keys', 2])
})

it('nothing is left of a request: neither its listener nor an unread body', async () => {
  const controller = new AbortController()
  const { signal } = controller
  expect(await beforeAbort(signal, Promise.resolve('in time'))).toBe('in time')
  expect(getEventListeners(signal, 'abort')).toHaveLength(0)
  const late = beforeAbort(signal, new Promise(() => {}))
  controller.abort()
  await expect(late).rejects.toMatchObject({ message: 'did not answer in time', isAnswer: false })
  const cancel = vi.fn()
  answering(() => new Response(new ReadableStream({ cancel }), { status: 500 }))
  await expect(fetchJson(issuer, {})).rejects.toThrow('answered 500')
  expect(cancel).toHaveBeenCalledOnce()
})

it('no more of a body is read than its limit', async () => {
  let sent = 0
  const body = async function* () {
    for (; sent < 100; sent++) yield Buffer.alloc(10)
  }
  expect(await bytesOf(body(), 1000)).toHaveLength(1000)
  sent = 0
  await expect(bytesOf(body(), 25, '25 bytes')).rejects.toThrow('answered more than 25 bytes')
  expect(sent).toBe(2)
})
