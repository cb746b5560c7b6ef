/** The fetch of a key directory: https, public addresses, no redirect, limits of size and time. G-07. */
import dns from 'node:dns'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { Duplex } from 'node:stream'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { directories, fetchDirectory, isPublicAddress } from '../../src/signatures/directory.js'
import { certificates } from '../support/servers/certificates.js'
import { listening } from '../support/servers/server.js'

const policy = { timeout: 2000, maxAge: 60_000, maxLength: 1000 }
const anyAddress = () => true
// Safe: it is called with these
const finding = (...found: ReadonlyArray<dns.LookupAddress>) =>
  ((_host: string, _options: object, callback: (error: null, all: unknown) => void) =>
    void callback(null, found)) as never

describe('public addresses', () => {
  it.each(['8.8.8.8', '93.184.216.34', '2606:4700::6810:84e5', '::ffff:8.8.8.8'])('%s is one', (address) => {
    expect(isPublicAddress(address)).toBe(true)
  })

  it.each([
    '127.0.0.1',
    '127.1.2.3',
    '0.0.0.0',
    '10.1.2.3',
    '172.16.0.1',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '198.18.0.1',
    '192.0.2.1',
    '203.0.113.9',
    '224.0.0.1',
    '255.255.255.255',
    '::1',
    '::7f00:1',
    '::',
    'fe80::1',
    'fc00::1',
    'ff02::1',
    '::ffff:127.0.0.1',
    '::ffff:a00:1',
    '64:ff9b::a00:1',
    '2002:a00:1::',
    '2001:db8::1',
    '2001::1',
    'localhost',
    '',
    '1',
    '0x7f.1',
  ])('%s is none', (address) => {
    expect(isPublicAddress(address)).toBe(false)
  })
})

describe('a host whose address is not public', () => {
  it.each(['https://localhost:1', 'https://127.0.0.1:1', 'https://[::1]:1'])(
    '%s is refused, and nothing is connected',
    async (url) => {
      const agents = directories(policy, 1)
      const result = await agents(`${url}/keys`, 'k')
      expect(result).toMatchObject({ _tag: 'Left', left: { _tag: 'invalid', why: 'party' } })
    },
  )

  it('is refused if only one of its addresses is private, and the name is looked up once', async () => {
    const both = [{ address: '93.184.216.34', family: 4 } as const, { address: '10.0.0.1', family: 4 } as const]
    const lookup = vi.spyOn(dns, 'lookup').mockImplementation(finding(...both))
    onTestFinished(() => lookup.mockRestore())
    const result = await directories(policy, 1)('https://rebinding.example/keys', 'k')
    expect(result).toMatchObject({ _tag: 'Left', left: { why: 'party' } })
    expect(lookup).toHaveBeenCalledTimes(1)
  })
})

it('the look-up of a new name waits for another one, with at most 99 more, and that of a name that was found for none of them', async () => {
  const ends: Array<() => void> = []
  const lookup = vi
    .spyOn(dns, 'lookup')
    .mockImplementation(
      ((_host: string, _options: object, callback: (error: null, found: unknown) => void) =>
        void ends.push(() => callback(null, [{ address: '10.0.0.1', family: 4 }]))) as never,
    )
  onTestFinished(() => lookup.mockRestore())
  const ask = (host: string, timeout: number) =>
    fetchDirectory(new URL(`https://${host}.example`), { ...policy, timeout }).catch(String)
  const end = async (n: number) => {
    while (ends.length <= n) await new Promise(setImmediate)
    ends[n]?.()
  }
  const known = ask('known', 60_000)
  await end(0)
  expect(await known).toBe('Error: not public')
  const slow = Array.from({ length: 100 }, (_, n) => ask(`a${n}`, 60_000))
  // it is not made if it waited longer than its fetch may take
  expect(await ask('b', 1)).toMatch('did not answer in time')
  expect(await ask('c', 60_000)).toMatch('too many others are')
  const again = ask('known', 60_000)
  await end(2)
  expect(await again).toBe('Error: not public')
  for (let n = 1; n < 102; n++) if (n !== 2) await end(n)
  expect(new Set(await Promise.all(slow))).toEqual(new Set(['Error: not public']))
  expect(lookup).toHaveBeenCalledTimes(102)
})

describe('a fetch', () => {
  const serve = async (respond: (res: ServerResponse) => void) => {
    const sockets: Duplex[] = []
    const { key, cert } = certificates().server
    let requests = 0
    const server = createServer({ key, cert }, (_req, res) => {
      requests++
      respond(res)
    }).on('connection', (socket) => void sockets.push(socket))
    const port = await listening(server)
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
    onTestFinished(() => void vi.unstubAllEnvs())
    return { url: new URL(`https://127.0.0.1:${port}/keys`), count: () => requests, sockets }
  }

  it('resolves to the bytes, of the address for which the name was looked up', async () => {
    const { url } = await serve((res) => void res.end(res.req.headers.accept))
    const lookup = vi.spyOn(dns, 'lookup').mockImplementation(finding({ address: '127.0.0.1', family: 4 }))
    onTestFinished(() => lookup.mockRestore())
    url.hostname = 'agent.example'
    const accepted = 'application/http-message-signatures-directory+json, application/json'
    expect((await fetchDirectory(url, policy, anyAddress)).toString()).toBe(accepted)
    expect(lookup).toHaveBeenCalledTimes(1)
  })

  it.each<[what: string, says: string, respond: (res: ServerResponse) => void]>([
    ['a redirect', 'answered 302', (res) => void res.writeHead(302, { location: '/other' }).write('a')],
    ['a failure that goes on', 'answered 500', (res) => void res.writeHead(500).write('a')],
    [
      'another protocol',
      'answered no HTTP response',
      ({ socket }) =>
        void socket?.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n'),
    ],
    ['no answer', 'socket hang up', ({ socket }) => void socket?.destroy()],
  ])('rejects for %s at once, follows nothing, and closes the connection', async (_what, says, respond) => {
    const { url, count, sockets } = await serve(respond)
    await expect(fetchDirectory(url, { ...policy, timeout: 60_000 }, anyAddress)).rejects.toThrow(says)
    expect(count()).toBe(1)
    await vi.waitUntil(() => sockets.every(({ destroyed }) => destroyed))
  })

  it('ends at the limit of the size, however long the answer is', async () => {
    const { url } = await serve((res) => {
      const write = (): void => {
        if (!res.destroyed) res.write(Buffer.alloc(500), () => setImmediate(write))
      }
      write()
    })
    await expect(fetchDirectory(url, policy, anyAddress)).rejects.toThrow('answered more than 1000 bytes')
  })

  it('ends after its time, however slowly the answer comes', async () => {
    const { url } = await serve((res) => void res.write('{'))
    await expect(fetchDirectory(url, { ...policy, timeout: 100 }, anyAddress)).rejects.toThrow()
  })
})
