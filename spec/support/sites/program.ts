/** The end of each program that `sessionSite.ts` starts. */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { writeHeapSnapshot } from 'node:v8'
import type Koa from 'koa'

/** Serves an application, and prints its port. It ends when its input does, so none outlives a suite that was killed. */
export const serveProgram = <S, C>(app: Koa<S, C>, port = 0): Server => {
  process.stdin.on('end', () => process.exit()).resume()
  const server = app.listen(port, '127.0.0.1', () => {
    // Safe: it listens on a port
    console.log(`listening on ${(server.address() as AddressInfo).port}`)
  })
  return server
}

/** Writes the memory of this program into a file beside it: the path. */
export const snapshot = async (name: string): Promise<string> => {
  for (let at = 0; at < 5; at++) {
    await pause(10)
    globalThis.gc?.()
  }
  return writeHeapSnapshot(fileURLToPath(new URL(`memory-${name}.heapsnapshot`, import.meta.url)))
}
