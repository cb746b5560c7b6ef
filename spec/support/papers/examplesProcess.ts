/**
 * Copies the project to a separate folder and runs commands there, because `npm start` deletes `dist`, which other
 * suites read.
 */
import { spawn } from 'node:child_process'
import { cp, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { compiled, exampleSources, userProject, type UserProject } from '../projects/userProject.js'

const root = fileURLToPath(new URL('../../../', import.meta.url))

const needed = ['package.json', 'tsconfig.json', '.ci', 'src', 'examples']

/** Copies what `npm start` needs. Call `remove` afterwards. */
export const copyProject = async () => {
  const folder = await mkdtemp(join(tmpdir(), 'koa-with-auth-examples-'))
  const remove = () => rm(folder, { recursive: true, force: true })
  try {
    for (const name of needed) await cp(join(root, name), join(folder, name), { recursive: true })
    await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  } catch (error) {
    await remove()
    throw error
  }
  return { folder, remove }
}

/** The examples as JavaScript, in a project that has the package, without the build of `npm start`. */
export const exampleProject = (): UserProject =>
  userProject([], Object.fromEntries(exampleSources().map((path) => [path.replace(/ts$/, 'js'), compiled(path)])))

export type Running = ReturnType<typeof start>

/** Starts a command in its own process group. */
export const start = (folder: string, command: string, args: string[], env: NodeJS.ProcessEnv = {}) => {
  const child = spawn(command, args, { cwd: folder, env: { ...process.env, ...env }, detached: true })
  /** What it printed so far. */
  const output = { stdout: '', stderr: '' }
  /** Its exit code. */
  const exited = new Promise<number | null>((resolve, reject) => {
    child.on('close', resolve)
    child.on('error', reject)
  })
  child.stdout.on('data', (chunk: Buffer) => (output.stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (output.stderr += chunk.toString()))
  return {
    output,
    exited,
    /** Resolves when it has printed this; rejects if it ends before. */
    printed: (text: string) =>
      new Promise<void>((resolve, reject) => {
        const look = (): void => (output.stdout.includes(text) ? resolve() : undefined)
        child.stdout.on('data', look)
        look()
        void exited.then((code) => reject(new Error(`ended with ${code}: ${output.stdout}${output.stderr}`)), reject)
      }),
    /** Gives it a line. */
    write: (line: string) => void child.stdin.write(`${line}\n`),
    /** Sends a signal to it and to its children, as a terminal does. */
    signal: (name: 'SIGINT' | 'SIGTERM' | 'SIGKILL') => {
      if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
        process.kill(-child.pid, name)
    },
  }
}
