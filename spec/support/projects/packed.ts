/** The package as npm packs it, installed in an empty project outside of the repository. */
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs' // prettier-ignore
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { madeOnce } from '../runs/madeOnce.js'
import { repository } from './typecheck.js'

const npm = (cwd: string, ...args: string[]): string =>
  execFileSync('npm', [...args, '--no-audit', '--no-fund', '--loglevel=error'], { cwd, encoding: 'utf8' })

/** What `npm pack` says about a package. */
interface PackedFiles {
  readonly filename: string
  readonly files: ReadonlyArray<{ readonly path: string }>
}

export type PackedProject = ReturnType<typeof packedProject>

const manifest = JSON.parse(readFileSync(`${repository}package.json`, 'utf8')) as { readonly files: string[] }

// What a build reads
const built = ['package.json', 'tsconfig.json', '.ci', 'src']

const changedAt = (path: string): number => {
  const { mtimeMs } = statSync(repository + path)
  if (!statSync(repository + path).isDirectory()) return mtimeMs
  const names = readdirSync(repository + path).filter((name) => name !== 'node_modules')
  return Math.max(mtimeMs, ...names.map((name) => changedAt(join(path, name))))
}

// `npm test` begins with a build
const isBuilt = (): boolean => {
  const declarations = 'dist/index.d.ts'
  return existsSync(repository + declarations) && built.every((path) => changedAt(path) < changedAt(declarations))
}

// A copy, because packing can include a build, which would disturb the repository and other suites
const copyRepository = (copy: string, more: ReadonlyArray<string>): void => {
  const others = ['LICENSE', 'README.md', 'examples', 'spec/data', ...manifest.files.filter((one) => !/dist/.test(one))]
  for (const path of [...built, ...others, ...more]) {
    cpSync(repository + path, join(copy, path), { recursive: true, filter: (from) => !from.includes('node_modules') })
  }
  symlinkSync(`${repository}node_modules`, join(copy, 'node_modules'))
}

const parsePacked = (stdout: string): PackedFiles => {
  // The output of scripts comes first
  const [packed] = JSON.parse(stdout.slice(stdout.indexOf('[\n'))) as PackedFiles[]
  return packed!
}

// `source`: the packed files and the tarball; `user`: an empty project with the package; `packed.json`: the output of
// npm
const pack = (folder: string): void => {
  const [source, user] = [join(folder, 'source'), join(folder, 'user')]
  mkdirSync(source)
  mkdirSync(user)
  const done = isBuilt()
  copyRepository(source, done ? ['dist'] : [])
  const packed = parsePacked(npm(source, 'pack', '--json', ...(done ? ['--ignore-scripts'] : [])))
  writeFileSync(join(folder, 'packed.json'), JSON.stringify(packed))
  writeFileSync(join(user, 'package.json'), JSON.stringify({ name: 'user', private: true, type: 'module' }))
  // Peers are not installed here: they come from the repository, so nothing is fetched
  const tarball = join(source, packed.filename)
  npm(user, 'install', '--prefer-offline', '--legacy-peer-deps', '--ignore-scripts', tarball)
}

/** Packs, and installs the tarball in an empty project with these packages beside it, taken from the repository. */
export const packedProject = (beside: ReadonlyArray<string>) => {
  const once = madeOnce('packed', pack)
  const packed = JSON.parse(readFileSync(join(once, 'packed.json'), 'utf8')) as PackedFiles
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'koa-with-auth-user-')))
  cpSync(join(once, 'user'), folder, { recursive: true, verbatimSymlinks: true })
  for (const name of beside) {
    mkdirSync(dirname(join(folder, 'node_modules', name)), { recursive: true })
    symlinkSync(realpathSync(`${repository}node_modules/${name}`), join(folder, 'node_modules', name))
  }
  return {
    folder,
    tarball: join(once, 'source', packed.filename),
    files: packed.files.map(({ path }) => path),
    /** Packs again without scripts: what the package would contain with these files. */
    listFiles: (withFiles: Readonly<Record<string, string>>): ReadonlyArray<string> => {
      const source = mkdtempSync(join(tmpdir(), 'koa-with-auth-source-'))
      cpSync(join(once, 'source'), source, { recursive: true, verbatimSymlinks: true })
      for (const [path, text] of Object.entries(withFiles)) {
        mkdirSync(dirname(join(source, path)), { recursive: true })
        writeFileSync(join(source, path), text)
      }
      const { files } = parsePacked(npm(source, 'pack', '--json', '--dry-run', '--ignore-scripts'))
      rmSync(source, { recursive: true, force: true })
      return files.map(({ path }) => path)
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
