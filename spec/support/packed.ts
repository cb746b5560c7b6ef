/** The package as npm packs it, installed in an empty project outside of the repository. */
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { repository } from './typecheck.js'

const run = promisify(execFile)

const npm = (cwd: string, ...args: string[]) =>
  run('npm', [...args, '--no-audit', '--no-fund', '--loglevel=error'], { cwd })

/** What `npm pack` says about a package. */
export interface PackedFiles {
  readonly filename: string
  /** The size of the tarball in bytes. */
  readonly size: number
  readonly files: ReadonlyArray<{ readonly path: string }>
}

export interface PackedProject {
  /** The empty project's folder. */
  readonly folder: string
  /** The tarball. */
  readonly tarball: string
  /** Packs again, scripts left out: what the package would hold now. */
  readonly listFiles: (withFiles: Readonly<Record<string, string>>) => Promise<ReadonlyArray<string>>
  readonly files: ReadonlyArray<string>
  /** The size of the tarball in bytes. */
  readonly packedBytes: number
  readonly remove: () => void
}

const manifest = JSON.parse(readFileSync(`${repository}package.json`, 'utf8')) as { readonly files: string[] }

// A copy, so that packing (which builds) disturbs neither the repository nor another suite
const copyRepository = (): string => {
  const copy = realpathSync(mkdtempSync(join(tmpdir(), 'koa-with-auth-source-')))
  const configuration = [
    'package.json',
    'tsconfig.json',
    'tsconfig.build.json',
    'tsconfig.cjs.json',
    '.ci',
    'src',
    'LICENSE',
    'README.md',
    'examples',
    'spec/data',
  ]
  for (const path of [...configuration, ...manifest.files.filter((one) => !/dist/.test(one))]) {
    cpSync(repository + path, join(copy, path), { recursive: true, filter: (from) => !from.includes('node_modules') })
  }
  symlinkSync(`${repository}node_modules`, join(copy, 'node_modules'))
  return copy
}

const parsePacked = (stdout: string): PackedFiles => {
  // what scripts print comes first
  const [packed] = JSON.parse(stdout.slice(stdout.indexOf('[\n'))) as PackedFiles[]
  return packed!
}

/** Packs, and installs the tarball in an empty project with these packages beside it, taken from the repository. */
export const packedProject = async (beside: ReadonlyArray<string>): Promise<PackedProject> => {
  const source = copyRepository()
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'koa-with-auth-user-')))
  const remove = () => {
    for (const path of [source, folder]) rmSync(path, { recursive: true, force: true })
  }
  const { stdout } = await npm(source, 'pack', '--json').catch((error: unknown) => {
    remove()
    throw error
  })
  const packed = parsePacked(stdout)
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'user', private: true, type: 'module' }))
  // Peers are left out here: they come from the repository, so that nothing of them is fetched
  await npm(
    folder,
    'install',
    '--prefer-offline',
    '--legacy-peer-deps',
    '--ignore-scripts',
    join(source, packed.filename),
  )
  for (const name of beside) {
    mkdirSync(dirname(join(folder, 'node_modules', name)), { recursive: true })
    symlinkSync(realpathSync(`${repository}node_modules/${name}`), join(folder, 'node_modules', name))
  }
  return {
    folder,
    tarball: join(source, packed.filename),
    files: packed.files.map(({ path }) => path),
    packedBytes: packed.size,
    listFiles: async (withFiles) => {
      for (const [path, text] of Object.entries(withFiles)) {
        mkdirSync(dirname(join(source, path)), { recursive: true })
        writeFileSync(join(source, path), text)
      }
      const { stdout } = await npm(source, 'pack', '--json', '--dry-run', '--ignore-scripts')
      return parsePacked(stdout).files.map(({ path }) => path)
    },
    remove,
  }
}
