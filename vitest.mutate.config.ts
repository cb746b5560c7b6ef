/** The suite that `npm run mutate` breaks the core under: what runs in this process and is quick. */
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { alias } from './vitest.config.js'

const rooms = ['/spec/unit/', '/spec/integration/', '/spec/laws/']
const last = '/spec/unit/entryPoints'

// A mutant is dead with the first test that fails: those that cost least are asked first. Last comes the one that tells of
// mutants that keep everything from loading, because a file without tests is no failure to Stryker; and it comes last, so
// that what runs at loading is no test's.
class LeastCostFirst extends BaseSequencer {
  override sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const room = ({ moduleId }: TestSpecification) =>
      moduleId.includes(last) ? rooms.length : rooms.findIndex((path) => moduleId.includes(path))
    return Promise.resolve([...files].sort((a, b) => room(a) - room(b) || (a.moduleId < b.moduleId ? -1 : 1)))
  }
}

export default defineConfig({
  resolve: { alias },
  test: {
    include: ['spec/unit/**/*.spec.ts', 'spec/laws/**/*.spec.ts', 'spec/integration/**/*.spec.ts'],
    exclude: [
      // of other rooms: sessions, page, audit, kit
      'spec/unit/{sessions,audit,testing}/**',
      'spec/laws/{sessionStores,testingKit}.spec.ts',
      'spec/integration/{docs*,audit-*,testing-*,openapi-*,package}.spec.ts',
      'spec/integration/sessions-{faults,fixation,https,many,outage,processes,rubbish}*.spec.ts',
      // read the sources as text, or start processes, which no mutant gets into
      'spec/unit/{architecture,docstrings,papers,requirements,words}.spec.ts',
      'spec/integration/{examples*,example-api}.spec.ts',
      // random trees and routers by the thousand: too slow to be run for every mutant
      'spec/laws/{truthTable,agreement}.spec.ts',
      'spec/integration/{levels,levels-also,levels-putput,levels-spellings,breakin-requests,openapi}.spec.ts',
      'spec/integration/{security-hooks,bad-inputs,breakin-promises,three-ways}.spec.ts',
      'spec/unit/openapi/cachedDocument.spec.ts',
    ],
    setupFiles: ['spec/support/fewerRuns.ts'],
    testTimeout: 20_000,
    env: { KOA_ROUTER: '@koa/router' },
    // one set of modules for all files of a run
    isolate: false,
    sequence: { sequencer: LeastCostFirst },
  },
})
