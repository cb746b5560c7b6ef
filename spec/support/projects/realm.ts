/** A module of options. */
export const realm = 'here'
