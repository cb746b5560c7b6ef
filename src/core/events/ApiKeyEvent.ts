/**
 * One change of an API key. The record contains no part of the key or of its digest.
 */

interface Changed {
  /** The id of the key, as `issue` returned it. */
  readonly id: string
}

interface Made extends Changed {
  /** Whose it is, as the store keeps it. */
  readonly owner: string
  /** What it may do. */
  readonly scopes: ReadonlyArray<string>
  /** When it expires, in milliseconds since 1970; left out if it never does. */
  readonly expiresAt?: number
}

/** A change of an API key, after the store has saved it; frozen. */
export type ApiKeyEvent =
  | (Made & { readonly event: 'issued' })
  | (Made & { readonly event: 'adopted' })
  | (Changed & {
      readonly event: 'rotated'
      /** How long older secrets are still good, in milliseconds. */
      readonly overlapMs: number
    })
  | (Changed & { readonly event: 'revoked' })
