/**
 * Finds credentials that were sent in a response.
 */

/** The forms in which a string can contain a credential: as it is, in base64, in a URL. */
export const traces = (secret: string): ReadonlyArray<string> => {
  const base64 = Buffer.from(secret).toString('base64').replace(/=+$/, '')
  return [
    ...new Set([secret, base64, Buffer.from(`${secret}:${secret}`).toString('base64'), encodeURIComponent(secret)]),
  ]
}

/** The first of these secrets that a string contains. */
export const leaked = (text: string, secrets: ReadonlyArray<string>): string | undefined =>
  secrets.find((secret) => traces(secret).some((trace) => text.includes(trace)))
