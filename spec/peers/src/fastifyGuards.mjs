/** Fastify with @fastify/auth, @fastify/basic-auth and @fastify/bearer-auth, registered as https://github.com/fastify/fastify-auth does. */

/** An application whose bearer token is the secret. `validate` checks a name and a password. */
export const fastifyGuards = async (secret, validate) => {
  const { default: fastify } = await import('fastify')
  const app = fastify()
  await app.register((await import('@fastify/auth')).default)
  await app.register((await import('@fastify/basic-auth')).default, { authenticate: true, validate })
  await app.register((await import('@fastify/bearer-auth')).default, {
    addHook: false,
    keys: new Set([secret]),
    verifyErrorLogLevel: 'silent',
  })
  return app
}
