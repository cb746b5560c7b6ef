#!/usr/bin/env node
/** `npm create koa-with-auth my-app -- --template tokens`: writes a service into a new folder. */
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { basename, join, resolve } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { parseArgs } from 'node:util'

// What the service imports, with the major versions
const needed = {
  all: '@koa/router@15 fp-ts@2 io-ts@2 koa@3',
  tokens: 'jose@6 swagger-ui-dist@5',
  keys: 'swagger-ui-dist@5',
  // store.ts
  kept: '@libsql/client@0.18 mysql2@3 postgres@3 redis@5',
  site: '@koa/bodyparser@6 @node-rs/argon2@2 koa-session@7 nodemailer@10 uqr@0.1 @simplewebauthn/server@14',
  browser: 'playwright-core@1',
  sessions:
    'swagger-ui-dist@5 @koa/bodyparser@6 @libsql/client@0.18 @node-rs/argon2@2 koa-session@7 rate-limiter-flexible@11',
  development: '@types/koa@3 @types/node@20 typescript@5.9',
}
const versionsOf = (...lists) =>
  Object.fromEntries(lists.flatMap((list) => list.split(' ')).map((one) => one.split(/(?!^)@/)))
const templates = ['tokens', 'keys', 'sessions', 'site']
const usage = `usage: npm create koa-with-auth my-app -- --template ${templates.join('|')} [--with devices] [--library <spec>]`
const here = import.meta.dirname
const read = (path) => readFileSync(join(here, path), 'utf8')

const ask = async (question, missing) => {
  if (!process.stdin.isTTY || !process.stdout.isTTY) throw new Error(missing)
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  return (await terminal.question(question).finally(() => terminal.close())).trim()
}

// What npm refuses as the name of a package, and the packages that the service imports
const checkName = (name) => {
  if (!/^[a-z0-9][a-z0-9._-]{0,213}$/.test(name)) {
    throw new Error(`${JSON.stringify(name)} is no name of a package: use small letters, digits and "-", and no path`)
  }
  const taken = ['koa-with-auth', 'node_modules', 'favicon.ico', ...Object.keys(versionsOf(...Object.values(needed)))]
  if (isBuiltin(name) || taken.includes(name)) {
    throw new Error(`${name} is the name of another package; choose another name`)
  }
}

// Lines of `koa-with-auth audit --write`, which sorts them by path
const lockOf = (template, hasDevices) => {
  // it has no docs page
  if (template === 'site') return read(`templates/site/auth${hasDevices ? '.devices' : ''}.lock`)
  const [version, comment, ...docs] = read('templates/auth.lock').trim().split('\n')
  const pathOf = (line) => line.split(/[ ;]/)[1]
  const lines = [...docs, ...read(`templates/${template}/auth.lock`).trim().split('\n')]
  return [version, comment, ...lines.sort((a, b) => (pathOf(a) < pathOf(b) ? -1 : 1)), ''].join('\n')
}

const hasStore = (template) => template === 'keys' || template === 'site'

const manifestOf = (name, template, library) => ({
  name,
  private: true,
  type: 'module',
  engines: { node: '>=20.19' },
  scarfSettings: { enabled: false }, // of a package that swagger-ui-dist brings
  scripts: {
    start: 'tsc && node dist/src/server.js',
    test: 'tsc && node --test dist/test/*.test.js && koa-with-auth audit dist/src/app.js --check auth.lock',
    policy: 'tsc && koa-with-auth audit dist/src/app.js --write auth.lock',
  },
  dependencies: {
    ...versionsOf(needed.all, needed[template], ...(hasStore(template) ? [needed.kept] : [])),
    'koa-with-auth': library,
  },
  devDependencies: versionsOf(needed.development, ...(template === 'site' ? [needed.browser] : [])),
})

// Lines of the template that end so are those of `--with devices`
const chooseDevices = (folder, hasDevices) => {
  rmSync(join(folder, 'auth.devices.lock'), { force: true })
  for (const part of hasDevices ? [] : ['src', 'test']) {
    for (const name of readdirSync(join(folder, part))) if (/^devices\./.test(name)) rmSync(join(folder, part, name))
  }
  for (const name of readdirSync(join(folder, 'src'))) {
    const path = join(folder, 'src', name)
    const text = readFileSync(path, 'utf8')
    writeFileSync(path, text.replace(/^(.*?) \/\/ devices\n/gm, hasDevices ? '$1\n' : ''))
  }
}

const create = async () => {
  const options = {
    template: { type: 'string' },
    with: { type: 'string' },
    library: { type: 'string' },
    help: { type: 'boolean' },
  }
  const { values, positionals } = parseArgs({ options, allowPositionals: true })
  if (values.help) return console.log(usage)
  if (positionals.length > 1) throw new Error(`one name is needed, not ${positionals.join(', ')}`)
  const name = positionals[0] ?? (await ask('Name of the new folder: ', 'the name of the new folder is missing'))
  checkName(name)
  const folder = resolve(name)
  if (existsSync(folder) && (!statSync(folder).isDirectory() || readdirSync(folder).length > 0)) {
    throw new Error(`${folder} is not empty; choose another name`)
  }
  const template = values.template ?? (await ask(`Template (${templates.join(', ')}): `, '--template is missing'))
  if (!templates.includes(template)) throw new Error(`no template ${JSON.stringify(template)}`)
  const hasDevices = values.with === 'devices'
  if (values.with !== undefined && !(hasDevices && template === 'site')) {
    throw new Error(`--with ${values.with}: there is --with devices, for the template site`)
  }
  const { library = `^${JSON.parse(read('package.json')).version}` } = values
  const isPacked = /^[^:]*\.tgz$/.test(library)
  if (isPacked && !existsSync(library)) throw new Error(`there is no file ${library}`)
  for (const part of ['common', template]) cpSync(join(here, 'templates', part), folder, { recursive: true })
  chooseDevices(folder, hasDevices)
  const kept = join('src', 'store.ts')
  if (hasStore(template)) cpSync(join(here, 'templates/site', kept), join(folder, kept))
  // the container's image is built from the folder alone
  if (isPacked) cpSync(library, join(folder, basename(library)))
  const installed = isPacked ? `file:${basename(library)}` : existsSync(library) ? `file:${resolve(library)}` : library
  const manifest = manifestOf(name, template, installed)
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`)
  writeFileSync(join(folder, 'auth.lock'), lockOf(template, hasDevices))
  const image = read('templates/common/Dockerfile')
  const changed = {
    tokens: image.replace(/ && mkdir .*| DATABASE_URL=.*|VOLUME .*\n/g, ''),
    site: image.replace('/api/health', '/health'),
  }
  writeFileSync(join(folder, 'Dockerfile'), changed[template] ?? image)
  // here, because npm publishes no .gitignore
  for (const file of ['.gitignore', '.dockerignore']) writeFileSync(join(folder, file), 'node_modules/\ndist/\n*.db*\n')
  console.log(`${name} is written. Now:\n\n  cd ${name}\n  npm install\n  npm test\n  npm start`)
}

await create().catch(({ message }) => {
  console.error(`${message}\n${usage}`)
  process.exitCode = 1
})
