// Writes two files into the package for tools that write programs: dist/llms.txt, a list of the guides, and
// dist/SKILL.md, what such a tool needs to know first. Their code is that of the guides, which tests compile and run.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const read = (path) => readFileSync(join(root, path), 'utf8')
const { name, description, version, homepage } = JSON.parse(read('package.json'))
const repository = homepage.replace(/#.*$/, '')
const addressOf = (guide) => `${repository}/blob/main/examples/guides/${guide}.md`

/** The groups of examples/guides/README.md, each with its guides and their questions. */
const groups = () =>
  read('examples/guides/README.md')
    .split(/^## /m)
    .slice(1)
    .map((section) => ({
      title: section.slice(0, section.indexOf('\n')),
      guides: [...section.matchAll(/^\| \[[\w-]+\]\(([\w-]+)\.md\) +\| (.+?) +\|$/gm)].map(([, guide, question]) => ({
        guide,
        question,
      })),
    }))

const titleOf = (guide) => /^# (.+)$/m.exec(read(`examples/guides/${guide}.md`))[1]

/** The list of the guides, as https://llmstxt.org describes it. */
export const llms = () =>
  [
    `# ${name}`,
    `> ${description}`,
    `Version ${version}. SKILL.md in the same folder has the rules and the first program for each task.`,
    ...groups().map(({ title, guides }) =>
      [
        `## ${title}\n`,
        ...guides.map(({ guide, question }) => `- [${titleOf(guide)}](${addressOf(guide)}): ${question}`),
      ].join('\n'),
    ),
  ].join('\n\n') + '\n'

/** What a user asks for, the guide that answers it, and a word of the program that is shown. */
const tasks = [
  ['Protect this endpoint, or the whole application', 'guarding', 'guardApp('],
  ['Another guard for one router, and a public route', 'levels', 'withAuth(null)'],
  ['Accept one of several credentials', 'combining', 'anyOf('],
  ['Accept the access tokens (JWT) of an identity provider', 'tokens', 'requireScopes('],
  ['Whose object is `/notes/:id`?', 'objects', 'owned('],
  ['A site with a login: sessions and passwords', 'site-with-login', 'passwordSignIn('],
  ['Sign in with Google or another provider', 'providers', 'oidc('],
  ['Issue API keys', 'keys-and-passwords', 'apiKeys('],
  ['Verify a webhook', 'webhooks', 'webhook('],
  ['Is any route open? A test that says so', 'audit', 'seal('],
  ['Test guards and handlers', 'testing', 'expectGuarded('],
]

const programOf = (guide, word) => {
  const blocks = [...read(`examples/guides/${guide}.md`).matchAll(/^```ts[^\n]*\n([\s\S]*?)^```$/gm)]
  const found = blocks.find(([, code]) => code.includes(word))
  if (found === undefined) throw new Error(`.ci/skill.mjs: no program of examples/guides/${guide}.md has ${word}`)
  return found[1]
}

const rules = `
- A guard is a part of the route: \`withAuth(a)\` on the application, a router or an operation. The innermost decision counts. Only a literal
  \`withAuth(null)\` makes an operation public.
- \`withAuth(a)(router)\` returns a router. Mount that one, and add routes to it.
- The current user is \`ctx.request.auth\`, with the type of what the authenticator returned. Never read it from a header, the query or the body.
- A hook \`authenticate\` returns the principal, or a falsy value, which is a 401 with its challenges. Do not write 401 by hand. A missing role or
  scope is a 403 by \`authorize\` or \`requireScopes\`, and an object of another user is a 404 by \`owned\`.
- Compare secrets with \`constantTimeEqual\`. Keep passwords with \`hash\` and \`verify\` of \`koa-with-auth/passwords\`.
- Do not verify tokens by hand, and do not add koa-jwt, koa-passport or jsonwebtoken: \`httpJwt\` fetches keys, checks issuer, audience, times and
  algorithms, and answers an outage with 503.
- Writes with a cookie from another site are refused already. Do not add CSRF tokens. Name other origins in \`trustedOrigins\`.
- A webhook is verified on the bytes that were signed: no body parser before its guard.
- Wrong options are a \`TypeError\` at start, which names the place and the fix. Read it, and do not catch it.
- Prove the result: \`seal(router, { public: [...] })\` where the application starts, and \`expectGuarded\` in a test.
`.trim()

// What a program of these tasks does not show, by the entry point that has it
const others = `
- \`koa-with-auth\`: \`optional\` (a caller may be anonymous), \`throttled\` and \`rateLimit\` (too many guesses, too many requests), \`cached\`,
  \`signedLinks\`, \`authSettings\` with \`errorMapper\` (pages and bodies of failures), \`perFailure\`, \`authSignal\` (a stream ends with its session).
- \`koa-with-auth/fp\`: \`map\` and \`flatMap\` (another principal), \`alt\`, \`timeout\`.
- \`koa-with-auth/stores\`: \`memoryStore\` for tests, \`sqliteStore\`, \`postgresStore\`, \`mysqlStore\`, \`redisStore\`; production names one.
- \`koa-with-auth/passwords\`: \`hash\`, \`verify\`, \`newPassword\` (checks a chosen password).
- \`koa-with-auth/sign-in\`: \`passwordSignIn\`, \`passwordReset\`, \`emailVerification\`, \`emailSignIn\`, \`secondFactor\` with \`totp\` and \`recoveryCodes\`.
- \`koa-with-auth/testing\`: \`expectGuarded\`, \`withPrincipal\`, \`testIssuer\` (tokens for tests); \`koa-with-auth/testing/laws\`: \`laws\`.
- \`koa-with-auth/upgrades\`: \`guardUpgrade\` (WebSockets), \`guardRequest\` (another framework), \`shutDown\` (at SIGTERM).

Behind a proxy that ends TLS, set \`app.proxy = true\`; without it, signing in answers 500 in production, and all clients have one address. Mobile apps and
command lines: \`sessions(app, { bearer: true })\`, and \`as: 'bearer'\` at their sign-in.
`.trim()

/** A skill, as https://agentskills.io describes it: when to read it, the rules, and a program for each task. */
export const skill = () => {
  const when = [
    'protect this endpoint',
    '401',
    '403',
    'current user',
    'require login',
    'JWT',
    'API key',
    'sign in with Google',
    'passkey',
    'session',
    'CSRF',
    'webhook',
  ]
  // YAML in single quotes, because the words are in double ones
  const words = when.map((one) => `"${one}"`).join(', ')
  const purpose = `Authentication and authorization in a Koa application. Use it for ${words}.`
  const shown = tasks.map(
    ([task, guide, word]) => `## ${task}\n\n\`\`\`ts\n${programOf(guide, word)}\`\`\`\n\nMore: ${addressOf(guide)}`,
  )
  return (
    [
      `---\nname: ${name}\ndescription: '${purpose}'\n---`,
      `# ${name}`,
      `${description} Written for version ${version}.`,
      'It needs koa, @koa/router, fp-ts and io-ts, Node 20.19 or newer, and `"type": "module"` for the programs here.',
      `## Rules\n\n${rules}`,
      ...shown,
      `## Where the rest is\n\n${others}`,
      `## Everything else\n\nllms.txt in the same folder lists the guides. To find one by the word that is used elsewhere: ${addressOf('words')}`,
    ].join('\n\n') + '\n'
  )
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  mkdirSync(join(root, 'dist'), { recursive: true })
  writeFileSync(join(root, 'dist/llms.txt'), llms())
  writeFileSync(join(root, 'dist/SKILL.md'), skill())
}
