import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const alias = { 'koa-with-auth': fileURLToPath(new URL('./src/index.ts', import.meta.url)) }
const suite = (name: string, include: string[]) => ({
  resolve: { alias },
  test: { name, include, testTimeout: 20_000 },
})

export default defineConfig({
  test: {
    projects: [
      suite('unit', ['spec/unit/**/*.spec.ts', 'spec/laws/**/*.spec.ts', 'spec/types/**/*.spec.ts']),
      suite('integration', ['spec/integration/**/*.spec.ts']),
    ],
  },
})
