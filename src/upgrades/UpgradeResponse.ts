/**
 * The response of an upgrade: hooks and the guard see it as `ctx.res`. It is silent while the request is decided, so
 * nothing that a hook writes is sent. Then it answers on the socket, or is never sent.
 *
 * It never sets a cookie, because an upgrade only reads sessions.
 */
import { ServerResponse, type IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'

// How long a refused client may read the response, in milliseconds
const LINGER = 2000

/** A response without a socket until it answers. */
export class UpgradeResponse extends ServerResponse {
  #isSilent = true

  constructor(request: IncomingMessage) {
    super(request)
    this.shouldKeepAlive = false
  }

  /** Whether the socket is free: no response to an earlier request is being written to it. */
  isNext(socket: Duplex): boolean {
    try {
      // Safe, here and below: only those parts of a Socket are used that every stream has
      this.assignSocket(socket as Parameters<ServerResponse['assignSocket']>[0])
      this.detachSocket(socket as Parameters<ServerResponse['detachSocket']>[0])
      return true
    } catch {
      return false
    }
  }

  /**
   * Sends what is written from now on, and then closes the socket. What the client still sends is read and dropped for
   * a while (RFC 9112 §9.6): closing with unread bytes would reset the connection, and the client might lose the
   * response.
   */
  answer(socket: Duplex): void {
    this.#isSilent = false
    if (socket.destroyed) return
    const timer = setTimeout(() => socket.destroy(), LINGER).unref()
    socket.once('close', () => clearTimeout(timer))
    this.once('finish', () => {
      socket.end()
      socket.resume()
    })
    // Koa waits for the socket, and would report its errors, but a client that has gone is no error
    this.removeAllListeners('socket')
    this.assignSocket(socket as Parameters<ServerResponse['assignSocket']>[0])
  }

  override writeHead(...given: ReadonlyArray<unknown>): this {
    if (this.#isSilent) return this
    this.removeHeader('Set-Cookie')
    // Safe: it is called with the same arguments
    return Reflect.apply(super.writeHead, this, given) as this
  }

  override write(...given: ReadonlyArray<unknown>): boolean {
    return this.#isSilent || (Reflect.apply(super.write, this, given) as boolean)
  }

  override end(...given: ReadonlyArray<unknown>): this {
    return this.#isSilent ? this : (Reflect.apply(super.end, this, given) as this)
  }

  override flushHeaders(): void {
    if (!this.#isSilent) super.flushHeaders()
  }

  // a 1xx is not the response
  override writeContinue(): void {}
  override writeProcessing(): void {}
  override writeEarlyHints(): void {}
}
