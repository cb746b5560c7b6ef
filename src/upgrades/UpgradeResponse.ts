/**
 * The response of an upgrade: what hooks and the guard see as `ctx.res`. It is silent while the request is decided, so that
 * nothing that a hook writes is sent; then it answers on the socket, or is never sent.
 *
 * It never carries a cookie: what an upgrade reads, it does not change.
 */
import { ServerResponse, type IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'

// How long a refused client has to read its answer, in milliseconds
const LINGER = 2000

/** A response without a socket until it answers. */
export class UpgradeResponse extends ServerResponse {
  #isSilent = true

  constructor(request: IncomingMessage) {
    super(request)
    this.shouldKeepAlive = false
  }

  /** Whether the socket is free: no answer to an earlier request is under way on it. */
  isNext(socket: Duplex): boolean {
    try {
      // Safe, here and below: what is used of a Socket is what any stream has
      this.assignSocket(socket as Parameters<ServerResponse['assignSocket']>[0])
      this.detachSocket(socket as Parameters<ServerResponse['detachSocket']>[0])
      return true
    } catch {
      return false
    }
  }

  /**
   * Sends what is written from now on, and closes the socket after it. What the client still sends is read and dropped for
   * a while (RFC 9112 §9.6): a close with unread bytes resets the connection, and the client might lose the answer.
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
    // Koa waits for the socket, and would report its errors; that a client is gone is none
    this.removeAllListeners('socket')
    this.assignSocket(socket as Parameters<ServerResponse['assignSocket']>[0])
  }

  override writeHead(...given: ReadonlyArray<unknown>): this {
    if (this.#isSilent) return this
    this.removeHeader('Set-Cookie')
    // Safe: it is called as it was
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

  // an answer of 1xx is none
  override writeContinue(): void {}
  override writeProcessing(): void {}
  override writeEarlyHints(): void {}
}
