/**
 * What a protected server of the Model Context Protocol must do, asked of one by HTTP. It needs nothing but Node, so this file can be
 * copied into another repository: `node mcp.mjs http://127.0.0.1:3000/mcp --issuer 4000`.
 */
import { createHmac, generateKeyPairSync, randomUUID, sign } from 'node:crypto'
import { once } from 'node:events'
import { realpathSync } from 'node:fs'
import { createServer, request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

// --- an issuer, whom the server must trust

const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url')
const now = () => Math.floor(Date.now() / 1000)

/** An issuer on loopback with discovery and keys. Port 0 is a free one. */
export const startIssuer = async (port = 0) => {
  const kid = randomUUID()
  const [own, foreign] = [1, 2].map(() => generateKeyPairSync('ec', { namedCurve: 'P-256' }))
  const jwk = { ...own.publicKey.export({ format: 'jwk' }), kid, alg: 'ES256', use: 'sig' }
  const server = createServer(({ url }, response) => {
    response.setHeader('Content-Type', 'application/json')
    if (url === '/jwks') return void response.end(JSON.stringify({ keys: [jwk] }))
    const isDocument = /^\/\.well-known\/(?:oauth-authorization-server|openid-configuration)$/.test(url)
    if (!isDocument) return void response.writeHead(404).end('{}')
    const endpoints = { authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token` }
    const supported = { response_types_supported: ['code'], code_challenge_methods_supported: ['S256'] }
    response.end(JSON.stringify({ issuer, jwks_uri: `${issuer}/jwks`, ...endpoints, ...supported }))
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `http://127.0.0.1:${server.address().port}`
  const signed = (claims, { header = {}, by = own.privateKey } = {}) => {
    const general = { iss: issuer, sub: 'anna', client_id: 'suite', jti: randomUUID(), iat: now(), exp: now() + 300 }
    const input = `${part({ alg: 'ES256', kid, typ: 'at+jwt', ...header })}.${part({ ...general, ...claims })}`
    if (header.alg === 'none') return `${input}.`
    if (header.alg === 'HS256') {
      const secret = own.publicKey.export({ format: 'pem', type: 'spki' })
      return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`
    }
    const signature = sign('sha256', Buffer.from(input), { key: by, dsaEncoding: 'ieee-p1363' })
    return `${input}.${signature.toString('base64url')}`
  }
  const stop = () => {
    server.close()
    server.closeAllConnections()
  }
  return { issuer, signed, foreignKey: foreign.privateKey, stop }
}

// --- requests

const TIMEOUT = 10_000
const MODERN = '2026-07-28'

/** Sends a request. `fields` is a list of names and values, so that a field can be sent twice. */
const send = (url, { method = 'POST', fields = [], body } = {}) =>
  new Promise((resolve, reject) => {
    const { protocol, host } = new URL(url)
    const given = new Set(fields.map(([name]) => name.toLowerCase()))
    const usual = [['Host', host], ...(body === undefined ? [] : [['Content-Length', String(Buffer.byteLength(body))]])]
    const all = [...usual.filter(([name]) => !given.has(name.toLowerCase())), ...fields]
    const sent = (protocol === 'https:' ? httpsRequest : httpRequest)(url, { method, headers: all.flat(), timeout: TIMEOUT })
    sent.on('timeout', () => sent.destroy(new Error('no answer in time')))
    sent.on('error', reject)
    sent.on('response', (response) => {
      const chunks = []
      const done = () => {
        const text = Buffer.concat(chunks).toString()
        resolve({ status: response.statusCode, headers: response.headers, text, message: messageIn(text) })
        sent.destroy()
      }
      response.on('data', (chunk) => {
        chunks.push(chunk)
        // a stream of events stays open
        if (/^data: .*\n/m.test(Buffer.concat(chunks).toString())) done()
      })
      response.on('end', done).on('error', reject)
      if (/event-stream/.test(response.headers['content-type'] ?? '') && method === 'GET') done()
    })
    sent.end(body)
  })

const messageIn = (text) => {
  try {
    return JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text)
  } catch {
    return undefined
  }
}

const meta = {
  'io.modelcontextprotocol/protocolVersion': MODERN,
  'io.modelcontextprotocol/clientInfo': { name: 'suite', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}
const contents = [
  ['Content-Type', 'application/json'],
  ['Accept', 'application/json, text/event-stream'],
]

/** A message of 2026-07-28, and its fields. `said` replaces what the fields say. */
const modern = (method, params = {}, said = {}) => {
  const name = params.name
  const fields = { 'MCP-Protocol-Version': MODERN, 'Mcp-Method': method, ...(name && { 'Mcp-Name': name }), ...said }
  return {
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } }),
    fields: [...contents, ...Object.entries(fields).filter(([, value]) => value !== undefined)],
  }
}

/** The same of 2025-11-25, which has no such fields. */
const legacy = (method, params = {}, said = {}) => ({
  body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  fields: [...contents, ...Object.entries(said)],
})

const initialize = legacy('initialize', {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'suite', version: '1' },
})

const bearer = (token) => ['Authorization', `Bearer ${token}`]

/** The parameter of a challenge of the Bearer scheme. */
const parameterOf = ({ headers }, name) =>
  new RegExp(`Bearer\\b.*?\\b${name}="([^"]*)"`, 'i').exec(headers['www-authenticate'] ?? '')?.[1]

const isServed = ({ status, message }) =>
  status >= 200 && status < 300 && message?.error === undefined && message?.result?.isError !== true
const said = ({ status, headers, message }) =>
  [status, headers['www-authenticate'], message?.error?.code].filter((one) => one !== undefined).join(' ')

// --- the rules

const documentOf = async (url) => {
  if (url === undefined || !URL.canParse(url)) return { what: 'no address of the document' }
  const answer = await send(url, { method: 'GET' })
  return { answer, document: answer.message, what: `${answer.status} ${answer.text.slice(0, 120)}` }
}
const pathOf = (url) => (new URL(url).pathname === '/' ? '' : new URL(url).pathname)
const wellKnownOf = (url) => `${new URL(url).origin}/.well-known/oauth-protected-resource${pathOf(url)}`
const announced = async ({ ask }) => documentOf(parameterOf(await ask(), 'resource_metadata'))

/** Makes rules that need this: an issuer that the server trusts, a server of 2026-07-28, a tool, or nothing. `run` asks it. */
const needing = (needs) => (id, rule, source, run) => ({ id, rule, source, needs, run })
const [always, withIssuer, inModern, withTool] = [undefined, 'issuer', 'modern', 'tool'].map(needing)

/** A rule about a token that must be refused: 401 `invalid_token`. */
const refused = (id, rule, source, tokenOf) =>
  withIssuer(id, rule, source, async (site) => {
    const answer = await site.ask({ token: tokenOf(site) })
    return { ok: answer.status === 401 && parameterOf(answer, 'error') === 'invalid_token', what: said(answer) }
  })

const AUTH = 'MCP authorization'
const HTTP = 'MCP transports'

export const rules = [
  always('unauthenticated', 'A request without a token is a 401', AUTH, async ({ ask }) => {
    const answers = [await ask(), await ask({ method: 'GET' }), await ask({ method: 'DELETE' })]
    const [post, ...others] = answers.map(({ status }) => status)
    return { ok: post === 401 && others.every((one) => [401, 405].includes(one)), what: [post, ...others].join(' ') }
  }),
  always('challenge', 'The 401 has a Bearer challenge with resource_metadata', 'RFC 9728 §5.1', async ({ ask }) => {
    const answer = await ask()
    return { ok: URL.canParse(parameterOf(answer, 'resource_metadata') ?? ''), what: said(answer) }
  }),
  always('metadata', 'The document is JSON, and its resource is the address of the server', 'RFC 9728 §3.3', async (site) => {
    const { document, what } = await announced(site)
    return { ok: document?.resource === site.url, what }
  }),
  always('authorization-servers', 'The document names an authorization server', AUTH, async (site) => {
    const { document, what } = await announced(site)
    const servers = document?.authorization_servers
    return { ok: Array.isArray(servers) && servers.length > 0 && servers.every((one) => URL.canParse(one)), what }
  }),
  always('well-known', 'The same document is at the well-known path with the path of the server', 'RFC 9728 §3.1', async (site) => {
    const { document, what } = await documentOf(wellKnownOf(site.url))
    return { ok: document?.resource === site.url, what }
  }),
  always('metadata-cors', 'Pages of every origin may read the document', 'Fetch, CORS protocol', async (site) => {
    const { answer, what } = await documentOf(wellKnownOf(site.url))
    return { ok: answer?.headers['access-control-allow-origin'] === '*', what }
  }),
  always('offline-access', 'offline_access is no scope of the server, in the document and the challenge', AUTH, async (site) => {
    const { document } = await announced(site)
    const all = [...(document?.scopes_supported ?? []), ...(parameterOf(await site.ask(), 'scope') ?? '').split(' ')]
    return { ok: !all.includes('offline_access'), what: all.join(' ') }
  }),
  always('host', 'A forged Host changes neither the document nor the challenge', 'RFC 9728 §7.3', async ({ ask, url }) => {
    const answer = await ask({ fields: [['Host', 'evil.example']] })
    const document = await send(wellKnownOf(url), { method: 'GET', fields: [['Host', 'evil.example']] })
    const written = [parameterOf(answer, 'resource_metadata'), document.message?.resource]
    return { ok: !written.join(' ').includes('evil.example'), what: written.join(' ') }
  }),
  always('garbage', 'A credential that is no token is a 401 invalid_token, or a 400', 'RFC 6750 §3.1', async ({ ask }) => {
    const answers = [await ask({ token: 'x' }), await ask({ token: 'e30.e30.e30' }), await ask({ token: 'a b' })]
    return { ok: answers.every(({ status }) => status === 401 || status === 400), what: answers.map(said).join(', ') }
  }),
  withIssuer('good', 'A good token is served', AUTH, async ({ ask, token }) => {
    const answer = await ask({ token: token() })
    return { ok: isServed(answer), what: said(answer) }
  }),
  refused('audience', 'A token for another server is refused', AUTH, ({ token }) => token({ aud: 'https://other.example/mcp' })),
  refused('audience-origin', 'A token for the origin of the server alone is refused', AUTH, ({ token, url }) =>
    token({ aud: new URL(url).origin }),
  ),
  refused('audience-longer', 'A token for a longer address is refused', AUTH, ({ token, url }) => token({ aud: `${url}.evil.example` })),
  refused('audience-missing', 'A token for no server is refused', AUTH, ({ token }) => token({ aud: undefined })),
  refused('expired', 'A token that has expired is refused', 'RFC 6750 §3.1', ({ token }) => token({ exp: now() - 120 })),
  refused('not-yet', 'A token that is not valid yet is refused', 'RFC 7519 §4.1.5', ({ token }) => token({ nbf: now() + 120 })),
  refused('issuer', 'A token that names another issuer is refused', 'RFC 9068 §4', ({ token }) => token({ iss: 'https://other.example' })),
  refused('signature', 'A token of another key is refused', 'RFC 7515 §5.2', ({ token, foreignKey }) => token({}, { by: foreignKey })),
  refused('none', 'A token without a signature is refused', 'RFC 8725 §3.2', ({ token }) => token({}, { header: { alg: 'none' } })),
  refused('confusion', 'A token whose HMAC key is the public key is refused', 'RFC 8725 §3.1', ({ token }) =>
    token({}, { header: { alg: 'HS256' } }),
  ),
  refused('bound', 'A token that is bound to a key is no bearer token', 'RFC 9449 §7.2', ({ token }) =>
    token({ cnf: { jkt: 'x'.repeat(43) } }),
  ),
  withIssuer('query', 'A token in the query is ignored', AUTH, async ({ ask, token }) => {
    const answer = await ask({ query: `?access_token=${token()}` })
    return { ok: answer.status === 401, what: said(answer) }
  }),
  withIssuer('scheme', 'A token of another scheme is ignored', 'RFC 6750 §2.1', async ({ ask, token }) => {
    const answer = await ask({ fields: [['Authorization', `Basic ${token()}`]] })
    return { ok: answer.status === 401, what: said(answer) }
  }),
  withIssuer('twice', 'Two Authorization fields are refused', 'RFC 9110 §5.3', async ({ ask, token }) => {
    const [good, wrong] = [bearer(token()), bearer('x')]
    const answers = [await ask({ fields: [good, wrong] }), await ask({ fields: [wrong, good] })]
    return { ok: answers.every(({ status }) => status === 400 || status === 401), what: answers.map(said).join(', ') }
  }),
  withIssuer('origin', 'A page of an origin that is not allowed is a 403, also with a good token', HTTP, async ({ ask, token }) => {
    const origins = ['https://evil.example', 'null']
    const answers = await Promise.all(origins.map((one) => ask({ token: token(), fields: [['Origin', one]] })))
    return { ok: answers.every(({ status }) => status === 403), what: answers.map(said).join(', ') }
  }),
  ...[
    ['method-field', 'A body with another method than Mcp-Method is a 400', { 'Mcp-Method': 'ping' }],
    ['name-field', 'A body with another name than Mcp-Name is a 400', { 'Mcp-Name': 'another' }],
    ['no-method-field', 'A request without Mcp-Method is a 400', { 'Mcp-Method': undefined }],
    ['no-name-field', 'A call without Mcp-Name is a 400', { 'Mcp-Name': undefined }],
  ].map(([id, rule, fields]) =>
    inModern(id, rule, 'SEP-2243', async ({ url, token, tool = 'a-tool', needed }) => {
      const message = modern('tools/call', { name: tool, arguments: {} }, fields)
      const all = [...message.fields, bearer(token({ scope: needed }))]
      const answer = await send(url, { ...message, fields: all })
      return { ok: answer.status === 400, what: said(answer) }
    }),
  ),
  withTool('scope', 'A tool whose scope is missing is a 403 insufficient_scope that names it', 'RFC 6750 §3.1', async ({ call, needs }) => {
    const answer = await call(modern)
    const scopes = (parameterOf(answer, 'scope') ?? '').split(' ')
    const isNamed = needs.split(' ').every((one) => scopes.includes(one))
    return { ok: answer.status === 403 && parameterOf(answer, 'error') === 'insufficient_scope' && isNamed, what: said(answer) }
  }),
  withTool('scope-granted', 'With the scope, the tool runs', AUTH, async ({ call, needed }) => {
    const answer = await call(modern, { scope: needed })
    return { ok: isServed(answer), what: said(answer) }
  }),
  ...[
    ['scope-by-fields', 'Fields that name a harmless method hide no call of the tool', modern],
    ['scope-by-revision', 'Nor do these fields hide a call of an older revision', legacy],
  ].map(([id, rule, make]) =>
    withTool(id, rule, AUTH, async ({ call }) => {
      const answer = await call(make, {}, { 'Mcp-Method': 'tools/list', 'Mcp-Name': undefined })
      return { ok: !isServed(answer), what: said(answer) }
    }),
  ),
  withTool('scope-by-batch', 'Nor do these fields hide a call in a batch', AUTH, async ({ call }) => {
    const batch = (...given) => {
      const { body, fields } = legacy(...given)
      return { body: `[${body}]`, fields }
    }
    const answer = await call(batch, {}, { 'Mcp-Method': 'tools/list' })
    const results = [answer.message].flat().filter((one) => one?.result !== undefined)
    return { ok: results.length === 0, what: said(answer) }
  }),
]

/**
 * Asks a server. Returns the result of each rule: `ok` is `undefined` if the rule was not asked, because there is no issuer, no tool or no
 * 2026-07-28. `issuer` is what `startIssuer` returned; `scopes` is what every request needs; `tool` needs the scopes `needs` beside them.
 */
export const runMcpRules = async ({ url, issuer, scopes = '', tool, needs }, report = () => {}) => {
  const token = (claims = {}, options) =>
    issuer?.signed({ aud: url, ...(scopes !== '' && { scope: scopes }), ...claims }, options)
  const needed = [scopes, needs].filter(Boolean).join(' ')
  const list = modern('tools/list')
  const asks = async ({ token: given, fields = [], query = '', method = 'POST' } = {}, message = list) =>
    send(url + query, {
      method,
      ...(method === 'POST' && { body: message.body }),
      fields: [
        ...(method === 'POST' ? message.fields : [['Accept', 'text/event-stream']]),
        ...(given === undefined ? [] : [bearer(given)]),
        ...fields,
      ],
    })
  const isModern = issuer !== undefined && isServed(await asks({ token: token() }))
  const site = {
    url,
    token,
    needs,
    needed,
    tool,
    foreignKey: issuer?.foreignKey,
    ask: (options) => asks(options, isModern || issuer === undefined ? list : initialize),
    // with the scopes of every request alone, unless `claims` has others
    call: (make, claims = {}, fields = {}) => {
      const message = make('tools/call', { name: tool, arguments: {} }, fields)
      return send(url, { ...message, fields: [...message.fields.filter(([, value]) => value !== undefined), bearer(token(claims))] })
    },
  }
  const has = { issuer: issuer !== undefined, modern: isModern, tool: isModern && tool !== undefined && needs !== undefined }
  const results = []
  for (const { id, rule, source, needs: wanted, run } of rules) {
    const isAsked = wanted === undefined || has[wanted]
    const outcome = isAsked
      ? await run(site).catch((error) => ({ ok: false, what: error.message }))
      : { ok: undefined, what: `not asked: no ${wanted}` }
    const result = { id, rule, source, ...outcome }
    results.push(result)
    report(result)
  }
  return results
}

const USAGE = `node mcp.mjs URL [--issuer PORT] [--scopes 'notes:read'] [--tool save_note --needs 'notes:write']
  --issuer PORT  starts an issuer at http://127.0.0.1:PORT. Let your server trust it, with URL as the audience.
  --scopes       what every request needs
  --tool         a tool without arguments that needs the scopes --needs beside them`

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const text = { type: 'string' }
  const options = { issuer: text, scopes: text, tool: text, needs: text }
  const { values, positionals } = parseArgs({ options, allowPositionals: true })
  const [url] = positionals
  if (url === undefined) {
    console.error(USAGE)
    process.exit(2)
  }
  const issuer = values.issuer === undefined ? undefined : await startIssuer(Number(values.issuer))
  const results = await runMcpRules({ ...values, url, issuer }, ({ id, rule, source, ok, what }) =>
    console.log(`${ok === undefined ? '-   ' : ok ? 'ok  ' : 'FAIL'} ${id}: ${rule} (${source})${ok === true ? '' : `; ${what}`}`),
  )
  issuer?.stop()
  const failed = results.filter(({ ok }) => ok === false)
  console.log(`${results.filter(({ ok }) => ok === true).length} hold, ${failed.length} do not`)
  process.exitCode = failed.length === 0 ? 0 : 1
}
