/**
 * Sends the hostile requests of bad-inputs.json to a server, over raw sockets. It needs nothing but Node, so this folder
 * can be copied into another repository: `node runner.mjs http://127.0.0.1:3000`.
 */
import { readFileSync, realpathSync } from 'node:fs'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'

export const corpus = JSON.parse(readFileSync(new URL('bad-inputs.json', import.meta.url), 'utf8'))

// --- bytes

export const expand = (macros) => (text) => {
  const plain = typeof text === 'string' ? text : text.prefix + text.repeat.repeat(text.times) + text.suffix
  return plain.replace(/\{\{([a-z.]+)\}\}/g, (_all, name) => {
    const value = macros[name]
    if (value === undefined) throw new Error(`no macro ${name}`)
    return value
  })
}

/** A request as it is sent over the socket, one character for each byte. */
export const bytesOf = (request, macros) => {
  const { method, path, rawHeaders, body, httpVersion = '1.1', omitHost = false, repeatHeader } = request
  const text = expand(macros)
  if (httpVersion === '0.9') return `${method} ${text(path)}\r\n\r\n`
  const has = (name) => rawHeaders.some(([given]) => given.toLowerCase() === name)
  const content = body === undefined ? '' : text(body)
  const sized = body === undefined || has('content-length') || has('transfer-encoding')
  const filler = `${repeatHeader?.name}: ${repeatHeader?.value}\r\n`
  const fillers = filler.repeat(repeatHeader?.times ?? 0)
  return [
    `${method} ${text(path)} HTTP/${httpVersion}\r\n`,
    // Host comes before the fillers, because Node itself refuses a request without it
    has('host') || omitHost ? '' : `Host: ${text('{{host}}')}\r\n`,
    repeatHeader?.at === 'start' ? fillers : '',
    ...rawHeaders.map(([name, value]) => `${text(name)}${value === null ? '' : `: ${text(value)}`}\r\n`),
    repeatHeader?.at === 'start' ? '' : fillers,
    has('connection') ? '' : 'Connection: close\r\n',
    sized ? '' : `Content-Length: ${content.length}\r\n`,
    `\r\n${content}`,
  ].join('')
}

const parse = (text, otherwise) => {
  const end = text.indexOf('\r\n\r\n')
  const [line = '', ...fields] = (end === -1 ? text : text.slice(0, end)).split('\r\n')
  const status = /^HTTP\/1\.[01] (\d{3})/.exec(line)?.[1]
  return {
    status: status === undefined ? otherwise : Number(status),
    headers: fields.map((field) => {
      const colon = field.indexOf(':')
      return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()]
    }),
    body: end === -1 ? '' : text.slice(end + 4),
  }
}

// A server that says nothing for a minute hangs, however busy the machine is
const HANGS = 60_000
// A response on a connection that stays open is complete before it is silent for so long
const SILENCE = 700

/** Sends bytes, one character for each, and reads until the server closes, or has responded and keeps the connection. */
export const sendRaw = (port, bytes, timeout = HANGS, host = '127.0.0.1') =>
  new Promise((resolve) => {
    const isClosed = /^connection:.*close/im.test(bytes)
    const chunks = []
    const socket = connect(port, host)
    const finish = (otherwise) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(parse(Buffer.concat(chunks).toString('latin1'), otherwise))
    }
    let timer = setTimeout(finish, timeout, 'hang')
    socket.on('data', (chunk) => {
      chunks.push(chunk)
      if (isClosed) return
      clearTimeout(timer)
      timer = setTimeout(finish, SILENCE, 'hang')
    })
    socket.on('error', () => {})
    socket.on('close', () => finish('closed'))
    socket.on('end', () => finish('closed'))
    socket.write(Buffer.from(bytes, 'latin1'))
  })

// --- what a client sent in confidence

const harmless = /^(?:host|connection|content-length|content-type|transfer-encoding|trailer|upgrade|range)$/i

// A response may name the fields of a form
const fieldNames = ['username', 'password']

/** Credentials, keys, cookies and query values of a request, as sent and decoded. */
export const secretsOf = ({ path, rawHeaders, body = '' }, macros) => {
  const text = expand(macros)
  const query = text(path).split('?').slice(1).join('?')
  const fields = rawHeaders.flatMap(([name, value]) => (harmless.test(name) || value === null ? [] : [text(value)]))
  const pieces = [...fields, query, text(body)].flatMap((sent) => [sent, ...sent.split(/[\s,;&"]+/)])
  const values = pieces.flatMap((piece) => [piece, piece.slice(piece.indexOf('=') + 1)])
  const decoded = values.flatMap((value) => [
    ...new URLSearchParams(`v=${value}`).getAll('v'),
    ...Buffer.from(value, 'base64').toString('latin1').split(':'),
  ])
  // Shorter ones occur by chance
  return [...new Set([...values, ...decoded])].filter((secret) => secret.length >= 4 && !fieldNames.includes(secret))
}

// --- the contract of five routes

const isNumber = (status) => typeof status === 'number'
const isAccepted = (status) => isNumber(status) && status >= 200 && status < 300
const hasFailed = (status) => status === 'hang' || (isNumber(status) && status >= 500 && status !== 501)

/** What is wrong with a response, in these words; an empty list if it is as the case says. */
export const faultsOf = ({ must, request }, answer, ran, usual, macros) => {
  const { status, headers, body } = answer
  const everything = [...headers.map(([name, value]) => `${name}: ${value}`), body].join('\n')
  const repeats = secretsOf(request, macros).some((secret) => everything.includes(secret) && !usual.includes(secret))
  return [
    ...(hasFailed(status) ? [`failed (${status})`] : []),
    ...(must === 'refuse' && (isAccepted(status) || ran > 0) ? ['let in'] : []),
    ...(must === 'accept' && !hasFailed(status) && (!isAccepted(status) || ran !== 1) ? ['refused'] : []),
    ...(status === 401 && !headers.some(([name]) => name === 'www-authenticate') ? ['401 without a challenge'] : []),
    ...(isNumber(status) && status >= 400 && repeats ? ['repeats a credential'] : []),
  ]
}

/**
 * Runs each case whose route the server has. Returns the routes, and for each case what happened. `report` gets each
 * result as it comes.
 */
export const runContract = async (url, report = () => {}) => {
  const { hostname, port, host } = new URL(url)
  const macros = { host, 'host.name': hostname, sid: 'sid' }
  const ask = (request) => sendRaw(Number(port || 80), bytesOf(request, macros), HANGS, hostname)
  const { routes } = corpus.contract
  const control = async (route) => {
    const { path, right } = routes[route]
    const answer = await ask({ method: 'GET', path, rawHeaders: right?.rawHeaders ?? [] })
    return { ...answer, runs: /^\s*\d+\s*$/.test(answer.body) ? Number(answer.body) : NaN }
  }

  const offered = []
  for (const route of Object.keys(routes)) {
    const { status, runs } = await control(route)
    const isThere = routes[route].right === null ? [401, 403].includes(status) : isAccepted(status) && runs >= 0
    if (isThere) offered.push(route)
  }
  const counted = offered.find((route) => routes[route].right !== null)
  if (counted === undefined) throw new Error(`${url} has none of the routes of the contract: ${Object.keys(routes)}`)

  let before = (await control(counted)).runs
  const results = []
  for (const one of corpus.cases.filter(({ route }) => offered.includes(route))) {
    const { path, method } = one.request
    const bare = await ask({ method, path: expand(macros)(path).split('?')[0], rawHeaders: [] })
    const answer = await ask(one.request)
    // Between two right requests, of which each is one run
    const { runs } = await control(counted)
    const ofBare = isAccepted(bare.status) ? 1 : 0
    const faults = Number.isNaN(runs)
      ? ['failed (the server is gone)']
      : faultsOf(one, answer, runs - before - 1 - ofBare, [bare.body, ...bare.headers.flat()].join('\n'), macros)
    before = runs
    const { id, route, must, why, rule } = one
    const result = { id, route, must, why, rule, status: answer.status, faults }
    results.push(result)
    report(result)
  }
  return { offered, results }
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const [url, ...flags] = process.argv.slice(2)
  if (url === undefined) throw new Error('node runner.mjs URL, of a server with routes of the contract in bad-inputs.json')
  const { offered, results } = await runContract(url)
  const others = results.filter(({ faults }) => faults.length > 0)
  if (flags.includes('--json')) console.log(JSON.stringify({ offered, results }, undefined, 2))
  else {
    for (const { id, must, status, why, rule, faults } of others) {
      console.log(`${id}: ${faults.join(', ')}: must ${must}, was ${status}: ${why} (${rule})`)
    }
    for (const route of offered) {
      const its = results.filter((one) => one.route === route)
      console.log(`${route}: ${its.filter(({ faults }) => faults.length === 0).length} of ${its.length}`)
    }
  }
  process.exitCode = others.length === 0 ? 0 : 1
}
