/** Runs the curl lines of the documentation: as requests from Node, and with curl itself if it is installed. */
import { execFile, spawnSync } from 'node:child_process'
import { ask, cookiesIn } from '../servers/server.js'

/** Runs a line. One runner keeps its cookies between lines. */
type Runner = (line: string) => Promise<{ readonly status: number; readonly body: string }>

const words = (line: string): string[] =>
  [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? '')

/** The request of a line. It understands the options of curl that the documentation uses; anything else is an error. */
export const requestIn = (line: string, jars: ReadonlyMap<string, string> = new Map()) => {
  const [command, ...rest] = words(line)
  if (command !== 'curl') throw new Error(`no curl line: ${line}`)
  const headers = new Headers()
  let url: string | undefined
  let method: string | undefined
  let body: string | undefined
  let keepIn: string | undefined
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    const value = (): string => rest.shift() ?? ''
    if (word === '-i') continue
    else if (word === '-X') method = value()
    else if (word === '-u') headers.set('Authorization', `Basic ${Buffer.from(value()).toString('base64')}`)
    else if (word === '-H') {
      const [name = '', text = ''] = value().split(/: (.*)/)
      headers.append(name, text)
    } else if (word === '-d') {
      body = value()
      headers.set('Content-Type', 'application/x-www-form-urlencoded')
    } else if (word === '-c') keepIn = value()
    else if (word === '-b') {
      const cookies = value()
      headers.set('Cookie', cookies.includes('=') ? cookies : (jars.get(cookies) ?? ''))
    } else if (word.startsWith('-') || url !== undefined) throw new Error(`not understood: ${word} in ${line}`)
    else url = word
  }
  if (url === undefined) throw new Error(`no URL: ${line}`)
  const init = { method: method ?? (body === undefined ? 'GET' : 'POST'), headers, ...(body !== undefined && { body }) }
  return { url, init, keepIn }
}

/** Runs lines as requests from Node. */
export const asRequests = (): Runner => {
  const jars = new Map<string, string>()
  return async (line) => {
    const { url, init, keepIn } = requestIn(line, jars)
    const answer = await ask(url, init)
    if (keepIn !== undefined) jars.set(keepIn, cookiesIn(answer.headers))
    return { status: answer.status, body: answer.text }
  }
}

/** Whether this machine has curl. */
export const hasCurl = (): boolean => spawnSync('curl', ['--version']).status === 0

/** Runs a line with a shell and curl, in a folder for its files. */
export const withCurl =
  (cwd: string): Runner =>
  (line) =>
    new Promise((resolve, reject) => {
      const quiet = line.replace(/^curl (?:-i )?/, "curl --silent --write-out '\\n%{http_code}' ")
      execFile('sh', ['-c', quiet], { cwd }, (error, stdout) => {
        const end = stdout.lastIndexOf('\n')
        if (error !== null) reject(new Error(`${line}: ${error.message}`))
        else resolve({ status: Number(stdout.slice(end + 1)), body: stdout.slice(0, end) })
      })
    })
