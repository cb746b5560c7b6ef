/** Runs an example whose server guards upgrades, and serves it. It prints its port. */
import http from 'node:http'
import { syncBuiltinESMExports } from 'node:module'
import { pathToFileURL } from 'node:url'

process.stdin.on('end', () => process.exit()).resume()
const { createServer } = http
http.createServer = (...given) => {
  const server = createServer(...given)
  // Its listener is added in the same turn of the event loop
  setImmediate(() => server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`)))
  return server
}
syncBuiltinESMExports()
await import(pathToFileURL(process.argv[2]).href)
