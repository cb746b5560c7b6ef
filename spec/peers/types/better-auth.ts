import { betterAuth } from 'better-auth'
import { fromNodeHeaders } from 'better-auth/node'
import express from 'express'

const auth = betterAuth({ emailAndPassword: { enabled: true } })
express().get('/me', async (req, res) => {
  const session = await auth.api.getSession({ headers: fromNodeHeaders(req.headers) })
  const one: Shown = session?.user
  res.json(one)
})
