// What both applications share: the users, and a parser of forms
export const users = new Map([
  ['anna', { username: 'anna', password: 'anna-secret', isAdmin: false }],
  ['sue', { username: 'sue', password: 'sue-secret', isAdmin: true }],
])

export const form = async (ctx, next) => {
  let text = ''
  for await (const chunk of ctx.req) text += chunk
  ctx.request.body = Object.fromEntries(new URLSearchParams(text))
  return next()
}
