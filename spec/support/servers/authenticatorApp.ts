/** An authenticator app: what RFC 4226 and RFC 6238 say, written apart from the sources. */
import { createHmac } from 'node:crypto'

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** The bytes of a secret, which is in base32 (RFC 4648 §6). */
export const bytesOf = (secret: string): Buffer => {
  const bits = [...secret].map((one) => alphabet.indexOf(one).toString(2).padStart(5, '0')).join('')
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)))
}

/** The code of a step (RFC 4226 §5.3). */
export const codeOfStep = (secret: Buffer, step: number, digits = 6): string => {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const mac = createHmac('sha1', secret).update(counter).digest()
  const number = mac.readUInt32BE(mac.at(-1)! & 0xf) % 2 ** 31
  return String(number % 10 ** digits).padStart(digits, '0')
}

/**
 * The code that it shows, some steps from now. It is the next one by default: that of now may have set the app up, and the one
 * before is too old when a step ends meanwhile.
 */
export const codeOf = (secret: string, offset = 1): string =>
  codeOfStep(bytesOf(secret), Math.floor(Date.now() / 30_000) + offset)
