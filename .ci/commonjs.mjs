// Completes the CommonJS copy in dist/cjs: what kind of modules they are, the declarations of the ES modules, which CommonJS
// reads as its own, and the one module that says where it is on disk. The JSON Schemas of records are copied as they are.
import { cpSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

for (const file of readdirSync('src/events')) {
  if (file.endsWith('.schema.json')) cpSync(join('src/events', file), join('dist', file))
}
writeFileSync('dist/cjs/package.json', '{ "type": "commonjs" }\n')
for (const file of readdirSync('dist', { recursive: true })) {
  if (file.endsWith('.d.ts') && !file.startsWith('cjs')) cpSync(join('dist', file), join('dist/cjs', file))
}
writeFileSync(
  'dist/cjs/openapi/here.js',
  "'use strict'\nexports.here = require('node:url').pathToFileURL(__filename).href\n",
)
