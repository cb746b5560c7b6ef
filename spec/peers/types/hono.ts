import { Hono } from 'hono'
import { jwt, type JwtVariables } from 'hono/jwt'

new Hono<{ Variables: JwtVariables }>().get('/me', jwt({ secret: 'supersecret', alg: 'HS256' }), (c) => {
  const one: Shown = c.get('jwtPayload')
  return c.json(one)
})
