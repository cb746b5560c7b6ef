/** A type that nothing has. */
declare const shown: unique symbol
type Shown = { readonly [shown]: never }
