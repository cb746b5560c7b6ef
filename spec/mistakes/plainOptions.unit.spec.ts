/** Options are plain objects: the members of a Map, of a class and of a promise would be no options, and a condition would be gone. */
import Router from '@koa/router'
import Koa from 'koa'
import {
  allOf,
  anyOf,
  apiApp,
  apiKeyHeader,
  authenticator,
  authorize,
  authSettings,
  Challenge,
  clientCertificate,
  formAuth,
  guardApp,
  httpBasicAuth,
  httpBearer,
  operation,
  owned,
  perFailure,
  requireScopes,
  sessionAuth,
  signedLinks,
  throttled,
  withAuth,
} from 'koa-with-auth'
import { seal } from 'koa-with-auth/audit'
import { httpIntrospection, httpJwt, mcpScopes, protectedResource, requireAuthentication } from 'koa-with-auth/jwt'
import { apiKeys } from 'koa-with-auth/keys'
import { docs, openApi } from 'koa-with-auth/openapi'
import { sessions } from 'koa-with-auth/sessions'
import { passwordSignIn } from 'koa-with-auth/sign-in'
import { oauth2, oidc } from 'koa-with-auth/sign-in/oidc'
import { passkeys } from 'koa-with-auth/sign-in/passkeys'
import { httpSignature, webBotAuth } from 'koa-with-auth/signatures'
import { mockRequest } from 'koa-with-auth/testing'
import { guardRequest, guardUpgrade } from 'koa-with-auth/upgrades'
import { webhook, webhookScheme } from 'koa-with-auth/webhooks'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { Strategy, messageOf, untyped } from '../support/projects/mistakes.js'

const bearer = httpBearer({ authenticate: () => ({ user: 'anna' }) })
const origin = 'https://api.example'

// Each takes the same value as its options
const calls: Readonly<Record<string, (options: never) => unknown>> = {
  'allOf({ ... })': (options) => allOf(options),
  'anyOf({ ... })': (options) => anyOf(options),
  apiApp: (options) => apiApp(options),
  'apiApp({ docs })': (docs) => apiApp({ title: 'API', version: '1', docs }),
  apiKeyHeader: (options) => apiKeyHeader(options),
  apiKeys: (options) => apiKeys(options),
  authenticator: (options) => authenticator(options),
  authorize: (options) => authorize(() => true, options),
  authSettings: (options) => authSettings(options),
  Challenge: (parameters) => Challenge.make('X', parameters),
  clientCertificate: (options) => clientCertificate(options),
  docs: (options) => docs(new Router(), options),
  formAuth: (options) => formAuth(options),
  guardApp: (options) => guardApp(bearer, options),
  guardRequest: (options) => guardRequest(new Koa(), bearer, options),
  guardUpgrade: (options) => guardUpgrade(new Koa(), bearer, options),
  httpBasicAuth: (options) => httpBasicAuth(options),
  httpBearer: (options) => httpBearer(options),
  httpIntrospection: (options) => httpIntrospection(options),
  httpJwt: (options) => httpJwt(options),
  'httpJwt({ issuer })': (issuer) => httpJwt({ issuer, audience: origin }),
  'httpJwt({ keys })': (keys) => httpJwt({ issuer: 'https://login.example', audience: origin, keys }),
  'httpJwt({ bound })': (bound) => httpJwt({ issuer: 'https://login.example', audience: origin, bound }),
  httpSignature: (options) => httpSignature(options),
  mcpScopes: (scopes) => mcpScopes(scopes),
  'mcpScopes({ method })': (names) => mcpScopes({ 'tools/call': names }),
  mockRequest: (spec) => mockRequest(spec),
  oauth2: (options) => oauth2(options),
  oidc: (options) => oidc(options),
  openApi: (options) => openApi(new Router(), options),
  operation: (options) => operation(options),
  'operation({ externalDocs })': (externalDocs) => operation({ externalDocs }),
  'operation({ responses })': (responses) => operation({ responses }),
  owned: (options) => owned('note', options),
  passkeys: (options) => passkeys(options),
  passwordSignIn: (options) => passwordSignIn(options),
  perFailure: (mappers) => perFailure(mappers),
  protectedResource: (options) => protectedResource(options),
  requireAuthentication: (options) => requireAuthentication(options),
  requireScopes: (options) => requireScopes(['read'], options),
  seal: (options) => seal(new Router(), options),
  sessionAuth: (options) => sessionAuth(options),
  sessions: (options) => sessions(new Koa(), options),
  signedLinks: (options) => signedLinks(options),
  throttled: (options) => throttled(options)(bearer),
  webBotAuth: (options) => webBotAuth(options),
  'webBotAuth({ directory })': (directory) => webBotAuth({ origin, agents: ['https://bot.example'], directory }),
  webhook: (options) => webhook(options),
  webhookScheme: (options) => webhookScheme(options),
  withAuth: (options) => withAuth(bearer, options),
}

const inherits = (members: object): unknown => Object.create(members)

const others: Readonly<Record<string, unknown>> = {
  'a Map': new Map(),
  'a Set of a condition': new Set([authorize(() => true)]),
  'a RegExp': /a/,
  'a Date': new Date(0),
  'an instance of a class': new Strategy(),
  'a promise': Promise.resolve({}),
  'an error': new Error('none'),
  bytes: Buffer.alloc(0),
  'a list of parameters': new URLSearchParams(),
  'an object that inherits its members': inherits({ realm: 'x' }),
  'a Map of another realm': runInNewContext('new Map()'),
  'a boxed boolean': Object(true),
  Math,
}

describe.each(Object.entries(calls))('%s', (_name, call) => {
  it.each(Object.entries(others))('R28 is a TypeError for %s', (_kind, options) => {
    expect(messageOf(() => call(untyped(options)))).toMatch(/object|options/)
  })
})

it('objects without a prototype, of another realm and of a module are plain', async () => {
  const options: unknown[] = [
    Object.assign(Object.create(null), { realm: 'here' }),
    runInNewContext('({ realm: "here" })'),
    await import('../support/projects/realm.js'),
  ]
  for (const one of options) expect(() => authSettings(untyped(one))).not.toThrow()
})
