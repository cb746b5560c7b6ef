import express from 'express'
import passport from 'passport'

express().get('/me', passport.authenticate('bearer', { session: false }), (req, res) => {
  const one: Shown = req.user
  res.json(one)
})
