/** The PostgreSQL of the benches: a server on a free port, with a folder of its own. */
import { execFileSync, spawn } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { freePort } from './redis.js'

const VERSIONS = '/usr/lib/postgresql'

// Debian keeps those of each version in a folder of their own; the first one that is there
const programs = (): string => {
  const versions = existsSync(VERSIONS) ? readdirSync(VERSIONS).sort((one, other) => Number(other) - Number(one)) : []
  const [version] = versions
  if (version === undefined) throw new Error('the benchmark needs PostgreSQL: apt-get install postgresql')
  return join(VERSIONS, version, 'bin')
}

// It refuses root
const unprivileged = () => {
  if (process.getuid?.() !== 0) return {}
  const id = (flag: string): number => Number(execFileSync('id', [flag, 'daemon'], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}

/** Starts one. `settings` are those of postgresql.conf. */
export const startPostgres = async (settings: Readonly<Record<string, string>> = {}) => {
  const folder = mkdtempSync(join(tmpdir(), 'koa-with-auth-bench-'))
  const user = unprivileged()
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid)
  const [bin, data, port] = [programs(), join(folder, 'data'), await freePort()]
  execFileSync(join(bin, 'initdb'), ['-D', data, '-U', 'bench', '-A', 'trust', '-E', 'UTF8', '--locale=C'], {
    stdio: 'pipe',
    cwd: folder,
    ...user,
  })
  const all = { port: String(port), listen_addresses: '127.0.0.1', unix_socket_directories: '', ...settings }
  const flags = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const child = spawn(join(bin, 'postgres'), ['-D', data, ...flags], { stdio: 'ignore', cwd: folder, ...user })
  const stop = (): void => void child.kill('SIGQUIT')
  process.once('exit', stop)
  const url = `postgres://bench@127.0.0.1:${port}/postgres`
  const pool = new pg.Pool({ connectionString: url, max: 4 })
  pool.on('error', () => {})
  const isUp = () => pool.query('select 1').then(Boolean, () => false)
  for (let tries = 0; tries < 200 && !(await isUp()); tries++) await pause(50)
  return {
    url,
    pool,
    close: async (): Promise<void> => {
      await pool.end()
      const ended = new Promise((resolve) => child.once('exit', resolve))
      stop()
      await ended
      process.off('exit', stop)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
