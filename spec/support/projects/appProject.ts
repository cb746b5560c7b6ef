/**
 * Copies an application of spec/apps to a folder outside of the repository, with the packed package and the peers that
 * it names.
 *
 * Other packages come from the node_modules of spec/apps and of the repository, as those of the folders above, so nothing
 * is fetched.
 */
import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { repository } from './typecheck.js'

const run = promisify(execFile)

type Env = Readonly<Record<string, string>>
export type AppProject = Awaited<ReturnType<typeof appProject>>

/** Makes the project. `packages` maps the names that it imports to the names under which the repository has them. */
export const appProject = async (app: string, packages: Readonly<Record<string, string>>) => {
  if (!existsSync(`${repository}spec/apps/node_modules`)) throw new Error('first: npm --prefix spec/apps ci')
  const above = realpathSync(mkdtempSync(join(tmpdir(), 'koa-with-auth-app-')))
  const folder = join(above, 'apps/app')
  const modules = join(folder, 'node_modules')
  const options = { cwd: repository, maxBuffer: 1 << 26 }
  const { stdout } = await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', above], options)
  const [packed] = JSON.parse(stdout.slice(stdout.indexOf('[\n'))) as ReadonlyArray<{ readonly filename: string }>
  const own = join(modules, 'koa-with-auth')
  mkdirSync(own, { recursive: true })
  await run('tar', ['-xzf', join(above, packed!.filename), '--strip-components=1', '-C', own])
  cpSync(`${repository}spec/apps/${app}`, folder, { recursive: true })
  for (const [name, installed] of Object.entries(packages)) {
    cpSync(`${repository}node_modules/${installed}`, join(modules, name), { recursive: true, dereference: true })
  }
  symlinkSync(`${repository}node_modules`, join(above, 'node_modules'))
  symlinkSync(`${repository}spec/apps/node_modules`, join(above, 'apps/node_modules'))
  /** Runs Node: what it printed, and its exit code. */
  const node = (args: ReadonlyArray<string>, env: Env = {}) =>
    run(process.execPath, args, {
      cwd: folder,
      env: { ...process.env, NODE_ENV: 'test', ...env },
      maxBuffer: 1 << 26,
    }).then(
      ({ stdout, stderr }) => ({ code: 0, text: stdout + stderr }),
      // Safe: an error of execFile has all three
      (error: unknown) => {
        const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
        return { code, text: stdout + stderr }
      },
    )
  return {
    folder,
    node,
    /** Runs a program of node_modules/.bin, as `npx` does. */
    run: (program: string, args: ReadonlyArray<string>, env?: Env) =>
      node([join(above, 'apps/node_modules/.bin', program), ...args], env),
    remove: () => rmSync(above, { recursive: true, force: true }),
  }
}
