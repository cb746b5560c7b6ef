/**
 * A real PostgreSQL or MariaDB on a free port of the loopback address, with a temporary data folder. It can be stopped, killed, and
 * started again on the same port. What it has acknowledged outlives it, but not its machine: it does not wait for the disk.
 */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { chownSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { describeUnless, programPath } from '../projects/programs.js'
import { freePort } from './redisServer.js'

/** The databases. */
export type Sql = 'postgres' | 'mariadb'

export type SqlServer = Awaited<ReturnType<typeof startSql>>

/** The user that every server has, with all rights and without a password. */
export const USER = 'kwa'

// Debian keeps those of each version in a folder of their own
const postgresFolder = (): string | undefined => {
  const versions = '/usr/lib/postgresql'
  const folders = (): string[] => {
    try {
      return readdirSync(versions)
        .sort((one, other) => Number(other) - Number(one))
        .map((version) => join(versions, version, 'bin'))
    } catch {
      return []
    }
  }
  const path = [process.env['PATH'] ?? '', ...folders()].join(':')
  return programPath(['initdb'], { PATH: path })?.replace(/\/initdb$/, '')
}

const mariadbPath = (name: string): string | undefined =>
  programPath([name], { PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/usr/bin` })

const packages = { postgres: 'postgresql', mariadb: 'mariadb-server' } as const

// What is missing, or `undefined`. If `CI` is set, it is an error, because nothing may be skipped there.
const missingSql = (kind: Sql): string | undefined => {
  const found = kind === 'postgres' ? postgresFolder() : mariadbPath('mariadbd')
  if (found !== undefined) return undefined
  const fix = `no ${kind === 'postgres' ? 'initdb' : 'mariadbd'}; apt-get install ${packages[kind]}`
  if (process.env['CI']) throw new Error(fix)
  return fix
}

/** A suite that needs a database. Without its program it is skipped. */
export const describeWithSql = (kind: Sql, name: string, suite: () => void): void =>
  describeUnless(missingSql(kind), name, suite)

/** The ids of a user of the system, for PostgreSQL, which refuses root. */
const unprivileged = (): { readonly uid: number; readonly gid: number } | undefined => {
  if (process.getuid?.() !== 0) return undefined
  const id = (flag: string): number => Number(execFileSync('id', [flag, 'daemon'], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}

const preparePostgres = (folder: string, port: number) => {
  const programs = postgresFolder()
  if (programs === undefined) throw new Error('no initdb; apt-get install postgresql')
  const user = unprivileged()
  if (user !== undefined) chownSync(folder, user.uid, user.gid)
  const data = join(folder, 'data')
  execFileSync(
    join(programs, 'initdb'),
    ['-D', data, '-U', USER, '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'],
    { stdio: 'pipe', ...user, cwd: folder },
  )
  const settings = {
    port,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    fsync: 'off',
    max_connections: 200,
  }
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  return { path: join(programs, 'postgres'), args: ['-D', data, ...flags], user }
}

const prepareMariadb = (folder: string, port: number) => {
  const [path, install] = [mariadbPath('mariadbd'), mariadbPath('mariadb-install-db')]
  if (path === undefined || install === undefined) throw new Error('no mariadbd; apt-get install mariadb-server')
  const data = join(folder, 'data')
  const user = process.getuid?.() === 0 ? ['--user=root'] : []
  execFileSync(install, ['--no-defaults', `--datadir=${data}`, '--skip-test-db', ...user], { stdio: 'pipe' })
  const init = join(folder, 'init.sql')
  writeFileSync(
    init,
    `create user if not exists '${USER}'@'%' identified by '';\ngrant all privileges on *.* to '${USER}'@'%' with grant option;\n`,
  )
  const settings = {
    datadir: data,
    port,
    'bind-address': '127.0.0.1',
    socket: join(folder, 's'),
    'init-file': init,
    'innodb-flush-log-at-trx-commit': 2,
    'innodb-buffer-pool-size': '32M',
  }
  const flags = Object.entries(settings).map(([name, value]) => `--${name}=${value}`)
  return { path, args: ['--no-defaults', '--skip-name-resolve', ...user, ...flags], user: undefined }
}

// What has not come after minutes does not come, however busy the machine is
const HANGS = 120_000

// The first message of a client of PostgreSQL, with its length and the version 3.0 of the protocol
const hello = Buffer.from(`\0\0\0\0\0\x03\0\0user\0${USER}\0database\0postgres\0\0`, 'latin1')
hello.writeInt32BE(hello.length)

// MariaDB greets; PostgreSQL begins with `R`, and with an error while it starts up
const answers = (kind: Sql, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      if (kind === 'postgres') socket.write(hello)
    })
    const end = (is: boolean): void => {
      socket.destroy()
      resolve(is)
    }
    socket.on('data', (sent) => end(kind === 'mariadb' || sent.toString('latin1').startsWith('R')))
    socket.on('error', () => end(false)).on('close', () => end(false))
  })

/** Starts one. */
export const startSql = async (kind: Sql) => {
  const folder = mkdtempSync(join(tmpdir(), `koa-with-auth-${kind}-`))
  const port = await freePort()
  const { path, args, user } = (kind === 'postgres' ? preparePostgres : prepareMariadb)(folder, port)
  let child: ChildProcess | undefined
  // a crash of PostgreSQL ends its own processes, too; SIGKILL would leave them for a moment
  const end = (signal: NodeJS.Signals): void => void child?.kill(signal)
  const atExit = (): void => end(kind === 'postgres' ? 'SIGQUIT' : 'SIGKILL')
  process.once('exit', atExit)
  /** Starts it again on the same port. */
  const start = async (): Promise<void> => {
    for (const until = Date.now() + HANGS; Date.now() < until; await pause(50)) {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null)
        child = spawn(path, args, { stdio: 'ignore', cwd: folder, ...user }).on('error', () => {})
      if (await answers(kind, port)) return
    }
    throw new Error(`${kind} did not start`)
  }
  const stop = async (signal: NodeJS.Signals): Promise<void> => {
    const stopping = child
    child = undefined
    if (stopping === undefined || stopping.exitCode !== null || stopping.signalCode !== null) return
    const ended = new Promise((resolve) => stopping.once('exit', resolve))
    stopping.kill(signal)
    await ended
  }
  await start()
  return {
    port,
    /** Ends the process at once, as a crash does. What it has on disk stays. */
    kill: () => stop('SIGKILL'),
    start,
    /** Ends it, and removes its folder. */
    close: async () => {
      await stop(kind === 'postgres' ? 'SIGQUIT' : 'SIGKILL')
      process.off('exit', atExit)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
