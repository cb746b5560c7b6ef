import { fileURLToPath } from 'node:url'
import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import manifest from './package.json' with { type: 'json' }

// the sources of the entry points that `exports` of package.json names
export const alias = Object.entries(manifest.exports).flatMap(([entry, built]) =>
  typeof built === 'string'
    ? []
    : {
        find: new RegExp(`^koa-with-auth${entry.slice(1)}$`),
        replacement: fileURLToPath(new URL(`./src/${entry}/index.ts`, import.meta.url)),
      },
)

// What has not ended after minutes hangs, however busy the machine is
const hangs = 300_000
// the files of a worker share its process and modules: most of a run was loading them anew for each
const shared = {
  isolate: false,
  setupFiles: ['spec/support/runs/sharedProcess.ts', 'spec/support/runs/cases.ts'],
  globalSetup: ['spec/support/runs/madeOnce.ts', 'spec/support/runs/redisOfRun.ts', 'spec/support/runs/sqlOfRun.ts'],
  // specs wait for the warnings that they cause, and Node would print all of them
  execArgv: ['--no-warnings'],
  testTimeout: hangs,
  expect: { poll: { timeout: 120_000, interval: 20 } },
  hookTimeout: hangs,
}
const suite = (name: string, include: string[], env: Record<string, string> = {}) => ({
  resolve: { alias },
  test: { ...shared, name, include, env },
})

// What `npm test` runs. A file whose name ends in .slow.spec.ts or .browser.spec.ts is in none of these.
const unit = suite('unit', ['spec/**/*.{unit,law,types}.spec.ts'])
const http = suite('http', ['spec/**/*.http.spec.ts'])
// the slow tier
const slow = suite('slow', ['spec/**/*.slow.spec.ts'])
const onPages = suite('browser', ['spec/**/*.browser.spec.ts'])
const globalSetup = [...shared.globalSetup, 'spec/support/runs/browserOfRun.ts']
const browser = { ...onPages, test: { ...onPages.test, globalSetup } }

// `npm run test:quick`: units and laws with fewer cases
const quick = {
  ...unit,
  test: { ...unit.test, env: { CASES: 'few' } },
}

// `npm run test:laws`: new cases, and 20 times as many, or `TIMES`
const laws = suite('laws', ['spec/**/*.law.spec.ts'], { CASES: 'drawn' })
const manyCases = {
  find: /^fast-check$/,
  replacement: fileURLToPath(new URL('./spec/support/runs/manyCases.ts', import.meta.url)),
}
const drawn = { ...laws, resolve: { alias: [...alias, manyCases] } }

// Specs again on other peers: `router` and `koa` are the names under which package.json installs them
const on = (router: string, koa: string, include: string[]) => {
  const its = suite(`${koa} and ${router}`, include, { KOA_ROUTER: router, KOA: koa })
  const peers = [
    { find: /^@koa\/router$/, replacement: router },
    { find: /^koa$/, replacement: koa },
  ]
  return { ...its, resolve: { alias: [...alias, ...peers] } }
}
const levelSpecs = (...names: ReadonlyArray<string>) => names.map((name) => `spec/koa/levels/${name}.spec.ts`)
const facts = levelSpecs('router-facts.http', 'cases.http')
// without paths, which tries an option that older routers do not have
const levels = [...facts, ...levelSpecs('methods.http', 'params.http', 'behind.http')]
const model = levelSpecs('model.http', 'model.http.slow')
const again = [
  // the number of cases that a law has, and not a part
  suite('all cases', ['spec/**/*.law.spec.ts', 'spec/**/*{SessionStore,stores}.unit.spec.ts'], {
    CASES: 'all',
  }),
  // both ends of the peer range whole, those between by the facts that the layer rests on, and by the model of levels
  on('koa-router-12', 'koa-2', [...levels, ...model]),
  on('koa-router-13', 'koa-2', [...facts, ...model]),
  on('koa-router-14', 'koa', [...facts, ...model]),
  on('@koa/router', 'koa-2', facts),
  on('koa-router-oldest', 'koa', levels),
]

const projects = (mode: string) => {
  if (mode === 'quick') return [quick]
  if (mode === 'laws') return [drawn]
  // `npm run test:all`: what `npm test` does not run
  if (mode === 'rest') return [slow, browser, ...again]
  return [unit, http, slow, browser]
}

export default defineConfig(({ mode }) => ({
  test: {
    // many files wait for stores and timers: one worker more than there are cores keeps the cores at work
    maxWorkers: availableParallelism() + 1,
    // what matters: failures, with what they printed
    silent: 'passed-only',
    reporters: ['./spec/support/runs/Progress.ts'],
    projects: projects(mode),
  },
}))
