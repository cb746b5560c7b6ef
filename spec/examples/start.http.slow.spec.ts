import { appendFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { asRequests } from '../support/papers/examplesCurl.js'
import { copyProject, start, type Running } from '../support/papers/examplesProcess.js'
import { freePort } from '../support/servers/redisServer.js'
import { ask, listening } from '../support/servers/server.js'

const END = 'Stop with Ctrl-C.'

let project: Awaited<ReturnType<typeof copyProject>>
let started: Running
let port: number

beforeAll(async () => {
  project = await copyProject()
  port = await freePort()
  started = run('npm', ['start'], { PORT: String(port), HOST: '127.0.0.1' })
  await started.printed(END)
})

// What a failed test started must not outlive the suite
const all: Running[] = []

const run = (command: string, args: string[], env: Record<string, string>): Running => {
  const running = start(project.folder, command, args, env)
  all.push(running)
  return running
}

afterAll(async () => {
  for (const running of all) running.signal('SIGKILL')
  await project.remove()
})

const urlOf = ({ output }: Running): string => /http:\/\/[\d.:]+/.exec(output.stdout)?.[0] ?? ''

const server = (env: Record<string, string>): Running => run(process.execPath, ['dist/examples/server.js'], env)

describe('npm start', () => {
  it('says first what it does, and compiles everything once', async () => {
    const [first, second] = started.output.stdout.replace(/^(?:>.*)?\n/gm, '').split('\n')
    expect([first, second]).toEqual([
      expect.stringMatching(/^Compiling koa-with-auth and its examples/),
      expect.stringMatching(/^Compiled the package and \d{2,3} files of examples in [\d.]+ s\.$/),
    ])
  })

  it('compiles at the next start only what changed', async () => {
    const edited = `${project.folder}/src/core/data.ts`
    await appendFile(edited, '\n')
    const again = run('npm', ['start'], { PORT: '0', HOST: '127.0.0.1' })
    await again.printed(END)
    expect(again.output.stdout).toContain('\nCompiled the package and 0 files of examples in ')
    again.signal('SIGINT')
    await again.exited
  })

  it('serves the examples on PORT and HOST', async () => {
    const answer = await ask(`http://127.0.0.1:${port}/api/bearer`, {
      headers: { Authorization: 'Bearer supersecret' },
    })
    expect(answer).toMatchObject({ status: 200, text: '{"token":"supersecret"}' })
  })

  it('prints curl lines, and the response to each has the status beside it', async () => {
    const curling = asRequests()
    const lines = [...started.output.stdout.matchAll(/^ {2}(curl .*\S) +# (\d{3})$/gm)]
    expect(started.output.stdout.match(/curl/g)).toHaveLength(lines.length)
    const reported = lines.map(([, curl = '', status]) => ({ curl, status: Number(status) }))
    const answered = []
    for (const { curl } of reported) answered.push({ curl, status: (await curling(curl)).status })
    expect(answered).toEqual(reported)
    expect(new Set(reported.map(({ status }) => status))).toEqual(new Set([200, 201, 204, 401, 403]))
  })

  it('prints commands of the audit, which find the policy file true', async () => {
    const lines = [...started.output.stdout.matchAll(/^ {2}npx koa-with-auth (.*)$/gm)].map(([, args = '']) => args)
    expect(lines).toHaveLength(2)
    for (const args of lines) {
      const running = run(process.execPath, ['dist/command/main.js', ...args.split(' ')], {})
      expect([args, await running.exited, running.output.stderr]).toEqual([args, 0, ''])
    }
  })

  it('serves a page at / that names every user and links the docs and the small examples, which all work', async () => {
    const page = (await ask(`http://127.0.0.1:${port}/`)).text
    const users = [...page.matchAll(/<b>(\w+)<\/b>[^<]*<code>(\S+)<\/code>/g)].map(([, name, password]) => [
      name,
      password,
    ])
    expect(users).toEqual(['anna', 'sam', 'sue', 'ina'].map((name) => [name, `${name}-secret`]))
    for (const [username = '', password = ''] of users) {
      const form = new URLSearchParams({ username, password })
      const { status } = await ask(`http://127.0.0.1:${port}/api/login`, { method: 'POST', body: form })
      expect([username, status]).toEqual([username, username === 'ina' ? 401 : 204])
    }
    const links = [...page.matchAll(/href="(\/[^"]+)"/g)].map(([, path = '']) => path)
    expect(links).toEqual(
      expect.arrayContaining(['/api/docs', '/api/openapi.json', '/examples/bearer', '/examples/signed']),
    )
    for (const path of links) {
      expect([path, (await ask(`http://127.0.0.1:${port}${path}`)).status]).toEqual([
        path,
        expect.toSatisfy((status) => status === 200 || status === 401),
      ])
    }
  })

  it('prints no warning and no error', () => {
    expect(started.output.stderr.replace(/^npm (warn|notice).*\n/gm, '')).toBe('')
  })

  // The last test, because it stops the server of the others
  it('ends at Ctrl-C, and frees the port', async () => {
    started.signal('SIGINT')
    await started.exited
    await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow()
  })
})

describe('the server without npm', () => {
  it('at SIGTERM ends a stream that is open, and completes it', async () => {
    const running = server({ PORT: '0' })
    await running.printed(END)
    const stream = await fetch(`${urlOf(running)}/examples/stream`, {
      headers: { Authorization: 'Bearer supersecret' },
    })
    running.signal('SIGTERM')
    expect(await stream.text()).toMatch(/^Hello anna(?:\nline \d+)*$/)
    expect(await running.exited).toBe(0)
  })

  it.each(['SIGINT', 'SIGTERM'] as const)('stops at %s, even with an open connection', async (signal) => {
    const running = server({ PORT: '0' })
    await running.printed(END)
    const url = urlOf(running)
    expect((await ask(`${url}/api/ipwhitelist`)).status).toBe(200)
    running.signal(signal)
    expect(await running.exited).toBe(0)
    await expect(fetch(url)).rejects.toThrow()
  })

  it('says that PORT=abc is invalid', async () => {
    const running = server({ PORT: 'abc' })
    expect(await running.exited).toBe(1)
    expect(running.output).toEqual({ stdout: '', stderr: 'PORT must be a number from 0 to 65535, not "abc"\n' })
  })

  it('says that a port is in use', async () => {
    const busy = await listening(createServer())
    const running = server({ PORT: String(busy) })
    expect(await running.exited).toBe(1)
    expect(running.output.stderr).toBe(`port ${busy} of 127.0.0.1 is taken; set PORT\n`)
  })

  it('says that a host is invalid', async () => {
    const running = server({ PORT: '0', HOST: 'no host' })
    expect(await running.exited).toBe(1)
    expect(running.output.stderr).toMatch(/^cannot listen: .*\n$/)
  })

  it('E3 warns at HOST=:: that its users and keys are open to the network', async () => {
    const host = '::'
    const running = server({ PORT: '0', HOST: host })
    await running.printed(END)
    expect(running.output.stderr).toMatch(
      new RegExp(`^Warning: ${host} is no loopback address, .*known to everyone.*HOST=127\\.0\\.0\\.1\\.\n$`),
    )
    running.signal('SIGTERM')
    await running.exited
  })

  it('E3 reads IP_ALLOW_LIST and KEYS, prints no key, and does not warn at HOST=localhost', async () => {
    const strong = 'k'.repeat(32)
    const running = server({ PORT: '0', HOST: 'localhost', IP_ALLOW_LIST: '10.0.0.1', KEYS: strong })
    await running.printed(END)
    const answer = await ask(`${urlOf(running)}/api/ipwhitelist`)
    expect(answer).toMatchObject({ status: 401, challenge: 'Custom realm="pets"' })
    expect(running.output.stdout).not.toContain(strong)
    expect(running.output.stderr).toBe('')
    running.signal('SIGTERM')
    expect(await running.exited).toBe(0)
  })
})
