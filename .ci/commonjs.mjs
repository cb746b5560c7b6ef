// Completes the CommonJS copy in dist/cjs: what kind of modules they are, the declarations of the ES modules, which CommonJS
// reads as its own, and the one module that says where it is on disk. The JSON Schema of records is copied as it is.
import { cpSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

cpSync('src/events/decision.schema.json', 'dist/decision.schema.json')
writeFileSync('dist/cjs/package.json', '{ "type": "commonjs" }\n')
for (const file of readdirSync('dist', { recursive: true })) {
  if (file.endsWith('.d.ts') && !file.startsWith('cjs')) cpSync(join('dist', file), join('dist/cjs', file))
}
writeFileSync(
  'dist/cjs/openapi/here.js',
  "'use strict'\nexports.here = require('node:url').pathToFileURL(__filename).href\n",
)
