// Rolls the declarations of the sources up: what an entry point reaches, with shared chunks. An ES module
// exports what CommonJS has, which works in this direction alone, unless it needs the types of the router.
// `node .ci/types.mjs`
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join, posix, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rollup } from 'rollup'
import { dts } from 'rollup-plugin-dts'
import { entries } from './bundle.mjs'
import { eventsSchema } from './eventsSchema.mjs'

// Whether declarations need those of the router, which declares a class for each module system. An index passes on what others have
const needsRouter = (importsOf, id, seen = new Set()) => {
  if (id === '@koa/router') return true
  if (seen.has(id) || (seen.size > 0 && id.endsWith('/index.d.ts'))) return false
  seen.add(id)
  return importsOf(id).some((one) => needsRouter(importsOf, one, seen))
}

const root = fileURLToPath(new URL('..', import.meta.url))

const write = (path, text) => {
  const file = join(root, 'dist', path)
  mkdirSync(join(file, '..'), { recursive: true })
  writeFileSync(file, text)
}

// The guides and the API reference have the programs: an editor shows what comes before them. What a file says of itself comes
// before nothing, and an import of a whole module is of no use to a declaration
const trimmed = (code) =>
  code
    .replace(/\n *\*\n *\* @example\n(?: *\*(?!\/).*\n)*/g, '\n')
    .replace(/^\/\*\*(?:(?!\*\/)[^])*\*\/\n(?=\n|\/\*\*)/gm, '')
    .replace(/^import '[^']+';\n/gm, '')

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
    hoistTransitiveImports: false,
    manualChunks: (id, { getModuleInfo }) => {
      const path = relative(emitted, id).replace(/\.d\.ts$/, '')
      const [room, ...rest] = path.split('/')
      if (room === 'index' || rest.at(-1) === 'index') return undefined
      // it names types of openid-client, which nobody installs for the rest of its room
      if (path.startsWith('sign-in/oidc/')) return 'sign-in-oidc'
      return needsRouter((one) => getModuleInfo(one)?.importedIds ?? [], id) ? `${room}-router` : room
    },
    entryFileNames: '[name].d.ts',
    chunkFileNames: 'chunks/[name].d.ts',
  })
  const texts = new Map(output.map(({ fileName, code }) => [fileName, trimmed(code)]).filter(([, code]) => code !== ''))
  const importsOf = (file) =>
    [...(texts.get(file) ?? '').matchAll(/ from '([^']+)'/g)].map(([, from]) =>
      from.startsWith('.') ? posix.join(posix.dirname(file), from).replace(/\.js$/, '.d.ts') : from,
    )
  for (const [file, code] of texts) {
    if (code.includes('_missingExportShim')) throw new Error(`${file} names what is marked as internal`)
    // openid-client has ES modules alone, whose types a CommonJS module names in this way
    const own = code.replace(
      /import (?:type )?\{([^}]*)\} from 'openid-client';/g,
      "import type {$1} from 'openid-client' with { 'resolution-mode': 'import' };",
    )
    write(`cjs/${file}`, own)
    const up = '../'.repeat(file.split('/').length - 1) || './'
    const required = (one) => `${up}cjs/${one.replace(/\.d\.ts$/, '.js')}`
    const isEntry = entries.some((one) => file === `${one.file}.d.ts`)
    if (needsRouter(importsOf, file)) {
      const shared = importsOf(file).filter((one) => texts.has(one) && !needsRouter(importsOf, one))
      const from = (one) =>
        ` from '${posix
          .relative(posix.dirname(file), one)
          .replace(/^(?!\.)/, './')
          .replace(/\.d\.ts$/, '.js')}'`
      write(
        file,
        shared.reduce((text, one) => text.replaceAll(from(one), ` from '${required(one)}'`), code),
      )
    } else if (isEntry) write(file, `export * from '${required(file)}';\n`)
  }
} finally {
  rmSync(emitted, { recursive: true, force: true })
}
writeFileSync(join(root, 'dist/events.schema.json'), JSON.stringify(eventsSchema))
