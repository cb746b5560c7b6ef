/** The example API and its page at `/`, combined as `npm start` does, with a separate database. */
import { exampleApp } from '../../../examples/api/app.js'
import { openDatabase } from '../../../examples/api/database.js'
import { duringSuite } from '../runs/duringSuite.js'
import { listen } from '../servers/server.js'

/** Serves it while the surrounding suite runs. */
export const exampleSite = () =>
  duringSuite(
    async () => {
      const database = await openDatabase('file::memory:')
      const served = await listen(exampleApp({ database, keys: ['k'.repeat(32)], allowedAddresses: '127.0.0.1' }))
      return { ...served, database }
    },
    async ({ close, database }) => {
      await close()
      database.close()
    },
  )
