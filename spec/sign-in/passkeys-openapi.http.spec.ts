/** What an OpenAPI document says about the routes of passkeys is what they read and answer. */
import Router from '@koa/router'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { operation, withAuth } from 'koa-with-auth'
import { openApi } from 'koa-with-auth/openapi'
import { passkeyOperations } from 'koa-with-auth/sign-in/passkeys'
import { describe, expect, it } from 'vitest'
import { invalidIn } from '../support/papers/openapiTools.js'
import { optionsFrom, passkeySite, withPasskey } from '../support/sites/passkeySite.js'
import { listen } from '../support/servers/server.js'

const schemaIn = (content: unknown): object =>
  // Safe: the bodies are described like this, and a compiled schema would fail otherwise
  (content as { readonly content: { readonly 'application/json': { readonly schema: object } } }).content[
    'application/json'
  ].schema
const errorsOf = (content: unknown, value: unknown) => {
  const validate = new Ajv2020().compile(schemaIn(content))
  return validate(value) ? [] : validate.errors
}

describe('the operations of passkeys', () => {
  it('make a valid document', async () => {
    const router = new Router()
    for (const [name, described] of Object.entries(passkeyOperations)) {
      router.post(`/${name}`, operation({ summary: name, ...described }), withAuth(null), () => {})
    }
    const document = openApi(router, { title: 'Shop', version: '1' })
    expect(await invalidIn(document)).toBeUndefined()
    expect(document.paths?.['/finish']?.post?.requestBody).toMatchObject({ required: true })
  })

  it('describe what is sent and answered', async () => {
    const { url, close } = await listen(passkeySite().app)
    try {
      const anna = await withPasskey(() => url, 'anna')
      const { begin, finish, beginRegistration, finishRegistration } = passkeyOperations
      const creation = await optionsFrom(anna, '/passkeys/options')
      expect(errorsOf(beginRegistration.responses?.['200'], creation)).toStrictEqual([])
      const { excludeCredentials: _, ...open } = creation
      expect(errorsOf(finishRegistration.requestBody, anna.phone.create(open))).toStrictEqual([])
      const again = await withPasskey(() => url, 'anna')
      const request = await optionsFrom(again, '/sign-in/passkey/options')
      expect(errorsOf(begin.responses?.['200'], request)).toStrictEqual([])
      const assertion = again.phone.get(request)
      expect(errorsOf(finish.requestBody, assertion)).toStrictEqual([])
      const { body } = await again.browser.post('/sign-in/passkey', assertion)
      expect(errorsOf(finish.responses?.['200'], body)).toStrictEqual([])
      expect(errorsOf(finish.requestBody, { ...assertion, response: {} })).not.toStrictEqual([])
    } finally {
      await close()
    }
  })
})
