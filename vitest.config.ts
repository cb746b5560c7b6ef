import { fileURLToPath } from 'node:url'
import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import manifest from './package.json' with { type: 'json' }

// What takes longest begins first, so that no core is idle at the end
const longest =
  /\/(?:declarations\.types|create\.http|package\.http|docs-page\.browser|docs-safety\.browser)\.spec\.ts$/
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLongest = ({ moduleId }: TestSpecification) => Number(longest.test(moduleId))
    return (await super.sort(files)).sort((a, b) => isLongest(b) - isLongest(a))
  }
}

// the sources of the entry points that `exports` of package.json names
export const alias = Object.entries(manifest.exports).flatMap(([entry, built]) =>
  typeof built === 'string'
    ? []
    : {
        find: new RegExp(`^koa-with-auth${entry.slice(1)}$`),
        replacement: fileURLToPath(
          new URL(built.import.default.replace(/^\.\/dist\/(.*)\.js$/, './src/$1.ts'), import.meta.url),
        ),
      },
)
// the files of a worker share its process and modules: most of a run was loading them anew for each
const shared = {
  isolate: false,
  setupFiles: ['spec/support/runs/sharedProcess.ts'],
  globalSetup: ['spec/support/runs/madeOnce.ts'],
  // specs wait for the warnings that they cause, and Node would print all of them
  execArgv: ['--no-warnings'],
  hookTimeout: 180_000,
}
const suite = (name: string, include: string[], testTimeout = 45_000) => ({
  resolve: { alias },
  test: { ...shared, name, include, testTimeout },
})
const unit = suite('unit', ['spec/**/*.{unit,law,types}.spec.ts'])
// `npm run test:quick`: fewer cases of each law, and without what takes longest
const quick = {
  ...unit,
  test: {
    ...unit.test,
    setupFiles: [...shared.setupFiles, 'spec/support/runs/quickRuns.ts'],
    exclude: [
      'spec/types/**',
      'spec/repository/{docstrings,entryPoints}.unit.spec.ts',
      'spec/audit/{paths,Way}.unit.spec.ts',
      'spec/testing/{index,laws/authenticator,laws/mapper,laws/index}.unit.spec.ts',
      'spec/{core,keys,openapi,sessions,testing}/{agreement,truthTable,testingKit,sessionStores,apiKeys}.law.spec.ts',
      'spec/openapi/document-cached.unit.spec.ts',
      'spec/sign-in/{ceremony-beginnings.unit,ceremonyMutants.law}.spec.ts',
    ],
  },
}
// The same suite on other peers: `router` and `koa` are the names under which package.json installs them
const on = (router: string, koa: string, include: string[]) => ({
  resolve: {
    alias: [...alias, { find: /^@koa\/router$/, replacement: router }, { find: /^koa$/, replacement: koa }],
  },
  test: {
    ...shared,
    name: `${koa} and ${router}`,
    include,
    testTimeout: 45_000,
    env: { KOA_ROUTER: router, KOA: koa },
  },
})
const http = (...names: ReadonlyArray<string>) => names.map((name) => `spec/koa/levels/${name}.http.spec.ts`)
const facts = http('router-facts', 'cases')
// without paths, which tries an option that older routers do not have
const levels = [...facts, ...http('levels', 'methods', 'params', 'putput', 'behind')]

export default defineConfig(({ mode }) => ({
  test: {
    // many files wait for stores and timers: one worker more than there are cores keeps the cores at work
    maxWorkers: availableParallelism() + 1,
    sequence: { sequencer: LongestFirst },
    // what matters: failures, with what they printed
    silent: 'passed-only',
    slowTestThreshold: 10_000,
    projects: [
      mode === 'quick' ? quick : unit,
      suite('integration', ['spec/**/*.http.spec.ts']),
      // needs a Chromium on the PATH
      suite('e2e', ['spec/**/*.browser.spec.ts'], 90_000),
      // the other peers: both ends whole, those between by the facts that the layer rests on
      on('koa-router-12', 'koa-2', levels),
      on('koa-router-13', 'koa-2', facts),
      on('koa-router-14', 'koa', facts),
      on('@koa/router', 'koa-2', facts),
      on('koa-router-oldest', 'koa', levels),
    ],
  },
}))
