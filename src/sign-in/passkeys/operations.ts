/**
 * What the routes of passkeys read and answer, for OpenAPI documents: parts of Operation Objects for `operation({ ... })`.
 */
import type { OpenAPIV3_1 } from 'openapi-types'
import { deepFreeze } from '../../core/data.js'

type Schema = OpenAPIV3_1.SchemaObject
type Described = Pick<OpenAPIV3_1.OperationObject, 'requestBody' | 'responses'>

const base64url: Schema = { type: 'string', pattern: '^[A-Za-z0-9_-]+$', description: 'Base64url without padding.' }
const strings: Schema = { type: 'array', items: { type: 'string' } }
const type: Schema = { type: 'string', const: 'public-key' }
const userVerification: Schema = { type: 'string', enum: ['required', 'preferred'] }
const timeout: Schema = { type: 'integer', description: 'In milliseconds.' }

// All properties are required, unless they are among the optional ones
const object = (
  properties: Readonly<Record<string, Schema>>,
  optional: Readonly<Record<string, Schema>> = {},
): Schema => ({
  type: 'object',
  properties: { ...properties, ...optional },
  required: Object.keys(properties),
})

const json = (schema: Schema) => ({ 'application/json': { schema } })
const body = (description: string, schema: Schema, required: boolean) => ({
  description,
  required,
  content: json(schema),
})
const ok = (description: string, schema: Schema) => ({ description, content: json(schema) })

const refused = {
  description: 'The answer is wrong or was used (`unknown`), or it was begun too long ago (`late`)',
  content: {
    'application/problem+json': { schema: object({ reason: { type: 'string', enum: ['unknown', 'late'] } }) },
  },
}

const credential = (description: string, response: Schema): Schema => ({
  ...object(
    { id: base64url, rawId: base64url, type, response },
    { authenticatorAttachment: { type: 'string' }, clientExtensionResults: { type: 'object' } },
  ),
  description,
})

const returnTo = object({}, { returnTo: { type: 'string', description: 'The path of this origin that follows.' } })

const creationOptions = object({
  challenge: base64url,
  rp: object({ id: { type: 'string' }, name: { type: 'string' } }),
  user: object({ id: base64url, name: { type: 'string' }, displayName: { type: 'string' } }),
  pubKeyCredParams: { type: 'array', items: object({ type, alg: { type: 'integer' } }) },
  timeout,
  excludeCredentials: { type: 'array', items: object({ id: base64url, type, transports: strings }) },
  authenticatorSelection: object({
    residentKey: { type: 'string', const: 'required' },
    requireResidentKey: { type: 'boolean' },
    userVerification,
  }),
  attestation: { type: 'string', const: 'none' },
})

const registration = credential(
  'A `RegistrationResponseJSON` of WebAuthn.',
  object(
    { clientDataJSON: base64url, attestationObject: base64url },
    {
      authenticatorData: base64url,
      transports: strings,
      publicKey: base64url,
      publicKeyAlgorithm: { type: 'integer' },
    },
  ),
)

const requestOptions = object({ challenge: base64url, rpId: { type: 'string' }, timeout, userVerification })

const assertion = credential(
  'An `AuthenticationResponseJSON` of WebAuthn.',
  object({ clientDataJSON: base64url, authenticatorData: base64url, signature: base64url, userHandle: base64url }),
)

/**
 * The bodies of the four routes: `begin` and `finish` of a sign-in or a step-up, `beginRegistration` and `finishRegistration`. Each is
 * a part of an Operation Object of OpenAPI 3.1. Write it into `operation({ ... })`, and replace the responses that your hook writes.
 *
 * @example
 * import { operation } from 'koa-with-auth'
 * import { passkeyOperations } from 'koa-with-auth/sign-in/passkeys'
 *
 * const described = operation({ summary: 'Sign in with a passkey', ...passkeyOperations.finish })
 */
export const passkeyOperations: Readonly<
  Record<'begin' | 'finish' | 'beginRegistration' | 'finishRegistration', Described>
> = deepFreeze({
  begin: {
    requestBody: body('Where to go afterwards', returnTo, false),
    responses: { 200: ok('Options for `navigator.credentials.get`', requestOptions) },
  },
  finish: {
    requestBody: body('The `toJSON()` of the credential', assertion, true),
    responses: { 200: ok('Signed in', object({ returnTo: { type: 'string' } })), 400: refused },
  },
  beginRegistration: {
    requestBody: body('Where to go afterwards', returnTo, false),
    responses: { 200: ok('Options for `navigator.credentials.create`', creationOptions) },
  },
  finishRegistration: {
    requestBody: body('The `toJSON()` of the credential', registration, true),
    responses: { 200: ok('Registered', object({ returnTo: { type: 'string' } })), 400: refused },
  },
})
