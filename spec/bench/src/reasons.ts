/** Why a target may be missed, by the name of its row; without figures, which the report writes beside them. */
export const reasons: Readonly<Record<string, string>> = {
  'an API key in memory':
    'The guard does more than the check by hand: the record of the request, the decision around the authenticator, the headers that are completed when the head is written, a walk that refuses a typing error without a look-up, and two Dates of the principal.',
  'Basic, throttled by a limiter that answers at once':
    'The guard reads the field again after the limiter has answered, checks for other sites, and has a time limit of its own.',
  'one bearer':
    'Most of it is the record of the request, the decision around the authenticator, and the headers of the response.',
  'ours as a part of koa-passport': 'Most of it is the hook, which compares two secrets.',
  'on SQLite':
    'The look-up also reads the revocation stamp of the user. When these figures were taken, the client compiled its statement at each call; compiled statements are kept now.',
  'registering them, beside the bare router':
    'Each level copies each layer, so that the same router can be mounted twice with different guards. Most of the time is garbage collection.',
  'registering them under eight levels, beside the bare router':
    'Each level copies each layer, so that the same router can be mounted twice with different guards. Most of the time is garbage collection.',
  'ours, more than by hand in middleware':
    'It is the record of the request with its place on the context, the record of the decision, the headers that are completed, and the credential as it was read, decoded and decided.',
  'packed, both module systems':
    'Two thirds are code, a quarter declarations, most of them the comments that editors show. [Size](../../examples/guides/tested-with.md#size) has the limit of a release.',
  'constantTimeEqual: differs in the first character, or in the last':
    'The control, which times one class beside itself, reaches such values in some runs: the test cannot tell differences of this size.',
  'the same, in processor time of the server': 'The reasons are those of one bearer.',
}
