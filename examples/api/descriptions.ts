// What the docs page says beside the guard of each operation, which it knows already: what an operation does, its form,
// its response, and which user or key of this demonstration to enter.
import { operation } from 'koa-with-auth'

const text = (description: string, example: string) => ({
  description,
  content: { 'text/plain': { schema: { type: 'string' as const }, example } },
})

const record = (description: string, example: Readonly<Record<string, string>>) => ({
  description,
  content: {
    'application/json': {
      schema: {
        type: 'object' as const,
        required: Object.keys(example),
        properties: Object.fromEntries(Object.keys(example).map((name) => [name, { type: 'string' as const }])),
      },
      example,
    },
  },
})

const detail = (description: string, example: string) => record(description, { detail: example })

const signInForm = {
  required: true,
  description: 'User name and password, as an HTML form sends them. Users: anna, sam (staff), sue (superuser).',
  content: {
    'application/x-www-form-urlencoded': {
      schema: {
        type: 'object' as const,
        required: ['username', 'password'],
        properties: {
          username: { type: 'string' as const, minLength: 1, examples: ['anna'], example: 'anna' },
          password: {
            type: 'string' as const,
            format: 'password',
            minLength: 1,
            examples: ['anna-secret'],
            example: 'anna-secret',
          },
        },
      },
      example: { username: 'anna', password: 'anna-secret' },
    },
  },
}

const badForm = {
  '413': detail('More than 10 KB', 'the body is too large'),
  '415': detail('No form', 'send application/x-www-form-urlencoded'),
  '422': {
    description: 'A field is missing, empty, or sent twice',
    content: {
      'application/json': {
        schema: {
          type: 'object' as const,
          required: ['detail', 'fields'],
          properties: {
            detail: { type: 'string' as const },
            fields: { type: 'array' as const, items: { type: 'string' as const } },
          },
        },
        example: { detail: 'a field is missing', fields: ['password'] },
      },
    },
  },
}

const tokens = ['Tokens']
const keys = ['Passwords and keys']
const sessions = ['Sessions']
const others = ['Without credentials']

/** The text at the top of the page, in CommonMark. */
export const introduction = `\
Every kind of authenticator in one API. Choose **Authorize**, enter a credential, and every test call carries it. Who can come in:

| Way | Credential |
| --- | --- |
| bearer token | \`supersecret\`, or one that \`POST /api/token\` issues to a user |
| HTTP Basic | \`admin\` with the password \`secret\` |
| API key, in the query, a header or a cookie | \`supersecret\` |
| session | \`anna\`, \`sam\` (staff) or \`sue\` (superuser) at \`POST /api/login\`, with \`anna-secret\` and so on |`

/** The chapters of the page, in their order. */
export const chapters = [
  { name: 'Tokens', description: 'Bearer tokens: a fixed one, and those that POST /api/token issues' },
  { name: 'Passwords and keys', description: 'HTTP Basic, and keys in the query, a header or a cookie' },
  { name: 'Sessions', description: 'Sign in once; the browser sends the cookie from then on' },
  { name: 'Without credentials', description: 'Where only the address of the client counts' },
]

/** What to enter for each scheme: a name for it, and a sentence. */
export const schemes = {
  demoToken: { schemeName: 'demoToken', description: 'The token is `supersecret`.' },
  strictToken: { schemeName: 'strictToken', description: 'The token is `supersecret`; a bad one throws.' },
  issuedToken: { schemeName: 'issuedToken', description: 'A token from `POST /api/token`.' },
  demoUser: { schemeName: 'demoUser', description: 'The user is `admin`, the password `secret`.' },
  clientKey: { schemeName: 'clientKey', description: 'The key of the client Acme is `supersecret`.' },
  queryKey: { schemeName: 'queryKey', description: 'The key is `supersecret`.' },
  headerKey: { schemeName: 'headerKey', description: 'The key is `supersecret`.' },
  cookieKey: { schemeName: 'cookieKey', description: 'The key is `supersecret`.' },
}

const tooMany = {
  description: 'Too many wrong passwords',
  headers: {
    'Retry-After': { description: 'Seconds until another is looked at', schema: { type: 'integer' as const } },
  },
}

/** The descriptions of the operations. */
export const described = {
  bearer: operation({
    summary: 'A bearer token',
    tags: tokens,
    responses: { '200': record('The token that was sent', { token: 'supersecret' }) },
  }),
  issueToken: operation({
    summary: 'Issue a token',
    description: 'Exchanges a user name and password for a random token, good for GET /api/whoami.',
    tags: tokens,
    requestBody: signInForm,
    responses: {
      '200': record('A token for one hour', { token: 'mhMCDQaAmvXqcVSXlvHMzQb1gEHYwHR4w3dH4dAbM3M' }),
      '401': detail('No such user, a wrong password, or an inactive user', 'Invalid credentials'),
      '429': tooMany,
      ...badForm,
    },
  }),
  whoami: operation({
    summary: 'Who an issued token belongs to',
    description: 'Decides nothing of its own, so what guards the application guards it.',
    tags: tokens,
    responses: { '200': record('The user', { principal: 'anna' }) },
  }),
  strict: operation({
    summary: 'A bearer token, refused with an exception',
    description: 'A wrong token raises an exception, and a handler of the application answers it.',
    tags: tokens,
    responses: {
      '200': record('The token that was sent', { token: 'supersecret' }),
      '401': detail('The answer of the exception handler', 'Invalid token supplied'),
    },
  }),
  basic: operation({
    summary: 'HTTP Basic',
    tags: keys,
    responses: { '200': record('The user', { httpuser: 'admin' }) },
  }),
  apikey: operation({
    summary: 'A key in the query, looked up among clients',
    tags: keys,
    responses: { '200': text('A greeting', 'Hello Acme') },
  }),
  headerkey: operation({
    summary: 'A key in a header',
    tags: keys,
    responses: { '200': text('The key that was sent', 'Token = supersecret') },
  }),
  cookiekey: operation({
    summary: 'A key in a cookie',
    tags: keys,
    responses: { '200': text('The key that was sent', 'Token = supersecret') },
  }),
  multiple: operation({
    summary: 'Either of two keys',
    description: 'A list: the key in the query is tried first, then the one in the header.',
    tags: keys,
    responses: { '200': text('The key that was accepted', 'Token = supersecret') },
  }),
  ipwhitelist: operation({
    summary: 'Known addresses only',
    description: 'IP_ALLOW_LIST holds the addresses.',
    tags: others,
    responses: { '200': text('The address', 'Authenticated client, IP = 127.0.0.1') },
  }),
  login: operation({
    summary: 'Sign in',
    description: 'Begins a session. The browser keeps its cookie, and sends it with the calls of this page, too.',
    tags: sessions,
    requestBody: signInForm,
    responses: {
      '204': { description: 'Signed in' },
      '401': detail('No such user, a wrong password, or an inactive user', 'Invalid credentials'),
      '429': tooMany,
      ...badForm,
    },
  }),
  logoutEverywhere: operation({
    tags: ['Sessions'],
    summary: 'Sign out everywhere',
    description: 'Ends all sessions of the user, in every browser, and all tokens of POST /api/token.',
    responses: { '204': { description: 'Signed out' } },
  }),
  logout: operation({
    summary: 'Sign out',
    description: 'Ends the session; a copy of its cookie is worth nothing afterwards.',
    tags: sessions,
    responses: { '204': { description: 'Signed out, or never signed in' } },
  }),
  readPets: operation({
    summary: 'Read, signed in',
    tags: sessions,
    responses: { '200': text('Who reads', 'Authenticated user anna') },
  }),
  addPet: operation({
    summary: 'Write, signed in',
    description: 'A write that a page of another site makes the browser send is refused with 403.',
    tags: sessions,
    responses: { '201': record('Written', { owner: 'anna' }) },
  }),
  protected: operation({
    summary: 'Any user',
    tags: sessions,
    responses: { '200': record('The user', { user: 'anna' }) },
  }),
  staffArea: operation({
    summary: 'Staff and superusers',
    description: 'Sign in as sam or sue.',
    tags: sessions,
    responses: { '200': record('A welcome', { message: 'Welcome, sam of the staff' }) },
  }),
  adminOnly: operation({
    summary: 'Superusers',
    description: 'Sign in as sue.',
    tags: sessions,
    responses: { '200': record('A welcome', { message: 'Welcome, superuser sue' }) },
  }),
}
