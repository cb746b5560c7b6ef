// The example's database: users and issued tokens in one SQLite file, through @libsql/client. Sessions and API keys
// have their own tables in it.
import { createClient, type Client, type Transaction } from '@libsql/client'
import { hash } from 'koa-with-auth/passwords'

const tables = [
  `create table users (
    username text primary key, password text not null,
    is_superuser integer not null, is_staff integer not null, is_active integer not null
  )`,
  'create table if not exists tokens (hash text primary key, username text not null, expires_at integer not null)',
]

// Replace these with your own users. Only a hash of a password is stored.
export const users = [
  { username: 'anna', superuser: 0, staff: 0, active: 1 },
  { username: 'sam', superuser: 0, staff: 1, active: 1 },
  { username: 'sue', superuser: 1, staff: 0, active: 1 },
  { username: 'ina', superuser: 0, staff: 0, active: 0 },
]

const isNew = async (database: Transaction | Client): Promise<boolean> => {
  const { rows } = await database.execute("select 1 from sqlite_master where type = 'table' and name = 'users'")
  return rows.length === 0
}

/** Opens the database, and creates and fills it if it is new. A user who was deleted does not come back. */
export const openDatabase = async (url: string): Promise<Client> => {
  const database = createClient({ url })
  if (!(await isNew(database))) return database
  const rows = await Promise.all(
    users.map(async ({ username, superuser, staff, active }) => {
      const password = await hash(`${username}-secret`)
      return { sql: 'insert into users values (?, ?, ?, ?, ?)', args: [username, password, superuser, staff, active] }
    }),
  )
  const transaction = await database.transaction('write')
  try {
    // Read again, because another process may have been first
    if (await isNew(transaction)) {
      await transaction.batch([...tables, ...rows])
      await transaction.commit()
    }
  } finally {
    transaction.close()
  }
  return database
}
