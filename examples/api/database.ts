// The example's database: users, clients and issued tokens in one SQLite file, through @libsql/client. Sessions have tables
// of their own in it.
import { createClient, type Client } from '@libsql/client'
import { digest, hashPassword } from './passwords.js'

const tables = `
  create table if not exists users (
    username text primary key, password text not null,
    is_superuser integer not null, is_staff integer not null, is_active integer not null
  );
  create table if not exists clients (name text primary key, api_key_hash text not null unique);
  create table if not exists tokens (hash text primary key, username text not null, expires_at integer not null);
`

// Replace these with your own users; a password is kept hashed.
const users = [
  { username: 'anna', superuser: 0, staff: 0, active: 1 },
  { username: 'sam', superuser: 0, staff: 1, active: 1 },
  { username: 'sue', superuser: 1, staff: 0, active: 1 },
  { username: 'ina', superuser: 0, staff: 0, active: 0 },
]

/** Opens the database, and creates and fills it where it is new. */
export const openDatabase = async (url: string): Promise<Client> => {
  const database = createClient({ url })
  await database.executeMultiple(tables)
  for (const { username, superuser, staff, active } of users) {
    await database.execute({
      sql: 'insert into users values (?, ?, ?, ?, ?) on conflict do nothing',
      args: [username, await hashPassword(`${username}-secret`), superuser, staff, active],
    })
  }
  await database.execute({
    sql: 'insert into clients values (?, ?) on conflict do nothing',
    args: ['Acme', digest('supersecret')],
  })
  return database
}
