/** What the environment says. On this machine everything has a value; where others can reach it, what is missing is named. */
import { randomBytes } from 'node:crypto'

const needed = {
  KEYS: 'secrets of 32 characters or more, separated by commas; the first signs',
  ORIGIN: 'the public origin, such as https://my.example',
  SMTP_URL: 'your mail server, such as smtps://user:password@mail.example',
}

export const settingsIn = (env: Readonly<Record<string, string | undefined>>) => {
  const { NODE_ENV = 'development', HOST: host = '127.0.0.1', PORT = '3000' } = env
  const isTrial = ['development', 'test'].includes(NODE_ENV) && ['127.0.0.1', '::1', 'localhost'].includes(host)
  const missing = Object.entries(needed).filter(([name]) => !isTrial && !env[name])
  if (missing.length > 0) throw new TypeError(missing.map(([name, what]) => `set ${name}: ${what}`).join('\n'))
  const { ORIGIN: origin = `http://localhost:${PORT}` } = env
  return {
    host,
    port: Number(PORT),
    origin,
    /** Without KEYS, a restart signs everyone out. */
    keys: env['KEYS']?.split(',') ?? [randomBytes(32).toString('hex')],
    databaseUrl: env['DATABASE_URL'] ?? 'file:app.db',
    redisUrl: env['REDIS_URL'],
    smtpUrl: env['SMTP_URL'],
    from: env['MAIL_FROM'] ?? `no-reply@${new URL(origin).hostname}`,
    /** The address whose account may see all accounts. */
    admin: env['ADMIN'],
    /** PROXY=0: no proxy is in front, which says whose address a request has. */
    proxy: env['PROXY'] === undefined ? !isTrial : env['PROXY'] === '1',
  }
}

export type Settings = ReturnType<typeof settingsIn>
