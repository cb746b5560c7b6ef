/**
 * Whether a credential that was sent is in what came back.
 */

/** A credential as a string can hold it: as it is, in base64, in a URL. */
export const traces = (secret: string): ReadonlyArray<string> => {
  const base64 = Buffer.from(secret).toString('base64').replace(/=+$/, '')
  return [
    ...new Set([secret, base64, Buffer.from(`${secret}:${secret}`).toString('base64'), encodeURIComponent(secret)]),
  ]
}

/** The first of these secrets that a string holds. */
export const leaked = (text: string, secrets: ReadonlyArray<string>): string | undefined =>
  secrets.find((secret) => traces(secret).some((trace) => text.includes(trace)))
