import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const alias = { 'koa-with-auth': fileURLToPath(new URL('./src/index.ts', import.meta.url)) }
const suite = (name: string, include: string[], router = '@koa/router') => ({
  resolve: { alias: router === '@koa/router' ? alias : { ...alias, '@koa/router': router } },
  test: { name, include, testTimeout: 20_000, env: { KOA_ROUTER: router } },
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
      // the other end of the peer range
      suite('oldest router', levels, 'koa-router-oldest'),
    ],
  },
})
