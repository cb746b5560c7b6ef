/** The suite that `npm run mutate` breaks the core under: what runs in this process and is quick. */
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { alias } from '../vitest.config.js'

const rooms = ['.unit.', '.http.', '.law.']
const last = '/entryPoints.'
// of other rooms, or of what reads sources as text or starts processes, which no mutant gets into
const otherRooms = [
  'spec/{sessions,sign-in,signals,stores,audit,command,testing,examples,package,jwt,keys,passwords,events,upgrades,migrations}/**',
  'spec/repository/!(entryPoints)*',
]

// A mutant is dead with the first test that fails: those that cost least are asked first. The last one finds
// mutants that keep everything from loading, because a file without tests is no failure to Stryker. It comes last, so that
// no test counts what runs while modules load.
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
    include: ['spec/**/*.{unit,law,http}.spec.ts'],
    exclude: [
      // who names specs gets them
      ...(process.env['MUTATE_SPECS'] === undefined ? otherRooms : []),
      'spec/openapi/*.http.spec.ts',
      // random trees and routers by the thousand: too slow to be run for every mutant
      'spec/{core,openapi}/{truthTable,agreement}.law.spec.ts',
      'spec/{requests,kinds}/{given-up,answers,bad-inputs}.http.spec.ts',
      'spec/openapi/document-cached.unit.spec.ts',
    ],
    setupFiles: ['spec/support/runs/fewerRuns.ts'],
    globalSetup: ['madeOnce', 'redisOfRun', 'sqlOfRun'].map((name) => `spec/support/runs/${name}.ts`),
    testTimeout: 20_000,
    env: { KOA_ROUTER: '@koa/router' },
    // one set of modules for all files of a run
    isolate: false,
    sequence: { sequencer: LeastCostFirst },
  },
})
