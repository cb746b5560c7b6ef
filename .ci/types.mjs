// Rolls the declarations of the sources up: what an entry point reaches, with shared chunks, once for each module system.
// `node .ci/types.mjs`
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rollup } from 'rollup'
import { dts } from 'rollup-plugin-dts'
import { entries } from './bundle.mjs'
import { eventsSchema } from './eventsSchema.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const emitted = mkdtempSync(join(tmpdir(), 'koa-with-auth-types-'))
try {
  const compiler = join(root, 'node_modules/typescript-7/bin/tsc')
  execFileSync(process.execPath, [compiler, '-p', join(root, '.ci/tsconfig.build.json'), '--outDir', emitted], {
    stdio: 'inherit',
  })
  const build = await rollup({
    input: Object.fromEntries(entries.map(({ file, module }) => [file, join(emitted, `${module}.d.ts`)])),
    external: /^[^./]/,
    plugins: [dts()],
    // what is marked as internal is not declared, and nothing that a user reaches names it
    shimMissingExports: true,
    onwarn: () => {},
  })
  const { output } = await build.generate({
    entryFileNames: '[name].d.ts',
    chunkFileNames: ({ name }) => `chunks/${name.replace(/\.d$/, '')}.d.ts`,
  })
  for (const { fileName, code } of output) {
    if (code.includes('_missingExportShim')) throw new Error(`${fileName} names what is marked as internal`)
    for (const folder of ['dist', 'dist/cjs']) {
      const file = join(root, folder, fileName)
      mkdirSync(join(file, '..'), { recursive: true })
      // openid-client has ES modules alone, whose types a CommonJS module names in this way
      const own = code.replace(
        /import (?:type )?\{([^}]*)\} from 'openid-client';/g,
        "import type {$1} from 'openid-client' with { 'resolution-mode': 'import' };",
      )
      writeFileSync(file, folder === 'dist' ? code : own)
    }
  }
} finally {
  rmSync(emitted, { recursive: true, force: true })
}
writeFileSync(join(root, 'dist/events.schema.json'), JSON.stringify(eventsSchema))
