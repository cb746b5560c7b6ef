import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

// the public face and the entry points beside it, as `exports` of package.json names them
const entries = {
  '': 'index',
  '/audit': 'audit/index',
  '/testing': 'testing/index',
  '/sessions': 'sessions/index',
  '/sessions/sqlite': 'sessions/sqliteStore',
  '/sessions/redis': 'sessions/redisStore',
}
export const alias = Object.entries(entries).map(([entry, file]) => ({
  find: new RegExp(`^koa-with-auth${entry}$`),
  replacement: fileURLToPath(new URL(`./src/${file}.ts`, import.meta.url)),
}))
const suite = (name: string, include: string[], router = '@koa/router', testTimeout = 20_000) => ({
  resolve: {
    alias: router === '@koa/router' ? alias : [...alias, { find: /^@koa\/router$/, replacement: router }],
  },
  test: { name, include, testTimeout, env: { KOA_ROUTER: router } },
})
// without levels-paths, which tries an option that the oldest router does not have
const levels = ['router-facts', 'levels', 'levels-cases', 'levels-methods', 'levels-params', 'levels-putput'].map(
  (name) => `spec/integration/${name}.spec.ts`,
)

export default defineConfig({
  test: {
    projects: [
      suite('unit', ['spec/unit/**/*.spec.ts', 'spec/laws/**/*.spec.ts', 'spec/types/**/*.spec.ts']),
      suite('integration', ['spec/integration/**/*.spec.ts']),
      // needs a Chromium on the PATH
      suite('e2e', ['spec/e2e/**/*.spec.ts'], '@koa/router', 90_000),
      // the other end of the peer range
      suite('oldest router', levels, 'koa-router-oldest'),
    ],
  },
})
