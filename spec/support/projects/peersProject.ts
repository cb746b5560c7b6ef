/**
 * A TypeScript project with other peers than the repository: their declarations are copied, as npm would install them.
 */
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { repository } from './typecheck.js'

/** Peers: the name in an application, and the name under which the repository has it installed. */
type Peers = Readonly<Record<string, string>>

// Packages that use types of Koa must find the Koa beside them
const naming = ['@types/koa-compose', 'koa-session']
const fromRepository = `${repository}node_modules/`

/** Makes `name` in a project that has the package installed: the same package and files, with these peers. */
export const peersProject = (packed: string, name: string, peers: Peers, files: string): string => {
  const folder = join(packed, name)
  const modules = join(folder, 'node_modules')
  mkdirSync(join(modules, '@types'), { recursive: true })
  for (const [as, from] of [...Object.entries(peers), ...naming.map((one) => [one, one] as const)]) {
    cpSync(realpathSync(fromRepository + from), join(modules, as), { recursive: true, dereference: true })
  }
  cpSync(join(packed, 'node_modules/koa-with-auth'), join(modules, 'koa-with-auth'), { recursive: true })
  const others = readdirSync(`${fromRepository}@types`).map((one) => `@types/${one}`)
  const own = 'fp-ts io-ts jose oauth4webapi openid-client fast-check @libsql openapi-types valibot zod'.split(' ')
  for (const other of [...others, ...own]) {
    if (other in peers || naming.includes(other) || other === '@types/koa__router') continue
    symlinkSync(realpathSync(fromRepository + other), join(modules, other))
  }
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name, private: true, type: 'module' }))
  cpSync(files, folder, { recursive: true })
  return folder
}

/** The output of one version of `tsc` for a project; an empty string if it finds no error. */
export const tsc = (version: string, folder: string, compilerOptions: object): Promise<string> => {
  const config = join(folder, `tsconfig.${version}.${Object.values(compilerOptions).join('.')}.json`)
  writeFileSync(
    config,
    JSON.stringify({ compilerOptions: { ...strict, ...compilerOptions }, include: ['*.ts', '*.cts'] }),
  )
  return new Promise((resolve) => {
    execFile(process.execPath, [`${fromRepository}${version}/bin/tsc`, '-p', config], (error, stdout, stderr) => {
      resolve(error === null ? stdout : `${stdout}${stderr}${error.message}`)
    })
  })
}

const strict = {
  target: 'es2023',
  lib: ['es2023', 'es2024.string'],
  types: ['node'],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  esModuleInterop: true,
  resolveJsonModule: true,
  skipLibCheck: false,
  // The exports of modules must have names that other modules can import
  declaration: true,
  emitDeclarationOnly: true,
  outDir: 'declared',
}
