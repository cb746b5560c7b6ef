// Runs Project Wycheproof's vectors: `npm run vectors -- FOLDER`, where FOLDER has the JSON files of its testvectors_v1
// (https://github.com/C2SP/wycheproof). They are not in this repository. `--save` also writes the table of the guide "What
// it was tested with". A FOLDER of httpwg/structured-field-tests runs those.
//
// Keys go through httpJwt of the built package, whose TypeError refuses them. No payload of a vector is a JSON object, so
// httpJwt would refuse every token: the form and the signature go to the functions that it uses. What no file has, `crit` and
// signatures of another length, is signed here, and given to httpJwt whole.
import { spawnSync } from 'node:child_process'
import { createHmac, createPublicKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { commonJsOf } from './bundle.mjs'
import { runJose } from './joseVectors.mjs'
import { runStructuredFields } from './structuredFields.mjs'

const folder = process.argv[2]
const require = createRequire(import.meta.url)
if (folder === undefined || !existsSync(folder)) throw new Error('npm run vectors -- FOLDER, which has the JSON files')
const { httpJwt } = require('../dist/cjs/jwt.js')
const { mockRequest, withBearer } = require('../dist/cjs/testing.js')
const module = { exports: {} }
new Function('require', 'exports', await commonJsOf('jwt/signature.ts'))(require, module.exports)
const { checkSignature, oneKey, parseJwks, usableKeys } = module.exports

/** The cases with another result than the file says, and why. `npm run vectors` fails at any other. */
const explained = {
  json_web_signature_test: {
    ...Object.fromEntries([346, 350].map((id) => [id, 'the key says PS256, and its token PS384 (RFC 7517 §4.4)'])),
    ...Object.fromEntries([347, 351].map((id) => [id, 'the key says ES521, which is no algorithm (RFC 7518 §3.1)'])),
    ...Object.fromEntries([367, 370].map((id) => [id, 'byte for byte the token of the valid case 357'])),
    ...Object.fromEntries([372, 373].map((id) => [id, 'a "?" in base64url, which RFC 7515 §2 does not have'])),
  },
  json_web_key_test: {
    2: 'several secrets in one set: an issuer has one secret here',
    7: 'a public key of a weak generator (ROCA): not looked for, because the keys of a provider are trusted',
  },
}

const fromBase64 = (given) => Buffer.from(given, 'base64url')
const audience = 'https://api.example'
const issuer = 'https://issuer.example'

// The keys of a source of httpJwt, or undefined if it refuses them
const keysOf = (source, algorithms, make) => {
  try {
    httpJwt({ issuer: { issuer, ...source, ...(algorithms && { algorithms }) }, audience })
    return make()
  } catch (error) {
    if (error instanceof TypeError || error.code?.startsWith('ERR_')) return undefined
    throw error
  }
}

const ofJwks = (keys) => {
  const [first] = keys
  if (keys.length === 1 && first.kty === 'oct') {
    const secret = fromBase64(first.k)
    return keysOf({ secret }, first.alg === undefined ? undefined : [first.alg], () => oneKey(secret))
  }
  const jwks = { keys: keys.map(({ d: _d, p: _p, q: _q, dp: _dp, dq: _dq, qi: _qi, ...key }) => key) }
  return keysOf({ jwks }, undefined, () => parseJwks(usableKeys(jwks)))
}

// RFC 7515 §5.2: three parts without padding or stray bits, and a header that is an object
const readForm = (token) => {
  const parts = typeof token === 'string' ? token.split('.') : []
  const bytes = parts.map(fromBase64)
  if (parts.length !== 3 || bytes.some((one, at) => one.toString('base64url') !== parts[at])) return undefined
  try {
    const header = JSON.parse(bytes[0].toString())
    if (header === null || typeof header !== 'object' || Array.isArray(header)) return undefined
    return { header, signed: `${parts[0]}.${parts[1]}`, signature: bytes[2] }
  } catch {
    return undefined
  }
}

const isAccepted = async (form, keys, algorithm) => {
  if (form === undefined || keys === undefined) return false
  if (algorithm !== undefined && form.header.alg !== algorithm) return false
  return (await checkSignature(form, keys)) === 'good'
}

const tokens = (group) => {
  const key = group.public ?? group.private
  const list = key.keys ?? [key]
  const keys = ofJwks(list)
  return (test) => isAccepted(readForm(test.jws), keys, list.length === 1 ? list[0].alg : undefined)
}

const signatures = (alg) => (group) => {
  const { publicKeyPem } = group
  const keys = keysOf({ publicKey: publicKeyPem }, [alg], () => oneKey(createPublicKey(publicKeyPem)))
  return ({ msg, sig }) =>
    isAccepted({ header: { alg }, signed: Buffer.from(msg, 'hex'), signature: Buffer.from(sig, 'hex') }, keys)
}

// RFC 7518 §3.2: the whole code; RFC 2104: a key of 32 bytes or more
const codes = (group) => {
  if (group.tagSize !== 256 || group.keySize < 256) return undefined
  return ({ key, msg, tag }) => {
    const secret = Buffer.from(key, 'hex')
    const keys = keysOf({ secret }, ['HS256'], () => oneKey(secret))
    const form = { header: { alg: 'HS256' }, signed: Buffer.from(msg, 'hex'), signature: Buffer.from(tag, 'hex') }
    return isAccepted(form, keys)
  }
}

// --- tokens that are signed here

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const ec = (namedCurve) => generateKeyPairSync('ec', { namedCurve })
const secret = randomBytes(64)
const hmac = (hash) => ({ source: { secret }, make: (data) => createHmac(hash, secret).update(data).digest() })
const signer = ({ publicKey, privateKey: key }, hash, more) => ({
  source: { publicKey: publicKey.export({ type: 'spki', format: 'pem' }) },
  make: (data) => sign(hash, Buffer.from(data), { key, dsaEncoding: 'ieee-p1363', ...more }),
})
const pss = { padding: 6, saltLength: -1 }
const signers = {
  RS256: signer(rsa, 'sha256'),
  PS256: signer(rsa, 'sha256', pss),
  PS512: signer(rsa, 'sha512', pss),
  ES256: signer(ec('P-256'), 'sha256'),
  ES384: signer(ec('P-384'), 'sha384'),
  ES512: signer(ec('P-521'), 'sha512'),
  EdDSA: signer(generateKeyPairSync('ed25519'), null),
  HS256: hmac('sha256'),
  HS512: hmac('sha512'),
}
const zero = Buffer.alloc(1)
const lengths = {
  'without its last byte': (signature) => signature.subarray(0, -1),
  'without its first byte, which is zero': (signature) => signature.subarray(1),
  'and a byte more': (signature) => Buffer.concat([signature, zero]),
  'behind a zero': (signature) => Buffer.concat([zero, signature]),
  'that is empty': () => Buffer.alloc(0),
}
const crits = [['exp'], ['b64'], [], 'exp', null]

/** Tokens that are refused, each beside one that is let in and differs by nothing else. */
const signedHere = async () => {
  const rows = { cases: 0, right: 0 }
  const base64 = (value) => Buffer.from(JSON.stringify(value)).toString('base64url')
  for (const [alg, { source, make }] of Object.entries(signers)) {
    const kind = httpJwt({ issuer: { issuer, ...source, algorithms: [alg] }, audience, verified: false })
    const isIn = async (signed, signature) => {
      const token = `${signed}.${signature.toString('base64url')}`
      return (await kind.evaluate(mockRequest(withBearer(token))))._tag === 'Right'
    }
    const expires = Math.floor(Date.now() / 1000) + 600
    const payload = (n) => base64({ iss: issuer, aud: audience, exp: expires, n })
    const note = (what, isRight) => {
      rows.cases++
      if (isRight) rows.right++
      else console.log(`  signed here: ${alg}, ${what}: NOT AS IT SHOULD BE`)
    }
    for (const crit of crits) {
      const signed = `${base64({ alg, crit, b64: true, exp: 0 })}.${payload(0)}`
      note(`crit ${JSON.stringify(crit)}`, !(await isIn(signed, make(signed))))
    }
    for (const [what, change] of Object.entries(lengths)) {
      // a signature that begins with a zero, which OpenSSL may leave out
      let [signed, signature] = ['', Buffer.from([1])]
      for (let n = 0; signature[0] !== 0; n++) {
        signed = `${base64({ alg })}.${payload(n)}`
        signature = make(signed)
      }
      note(what, (await isIn(signed, signature)) && !(await isIn(signed, change(signature))))
    }
  }
  return rows
}

const files = {
  json_web_signature_test: tokens,
  json_web_key_test: tokens,
  ecdsa_secp256r1_sha256_p1363_test: signatures('ES256'),
  ecdsa_secp384r1_sha384_p1363_test: signatures('ES384'),
  ed25519_test: signatures('EdDSA'),
  rsa_pss_2048_sha256_mgf1_32_test: signatures('PS256'),
  rsa_signature_2048_sha256_test: signatures('RS256'),
  hmac_sha256_test: codes,
}

const guide = fileURLToPath(new URL('../examples/guides/tested-with.md', import.meta.url))
/** Writes what a run has counted between two comments of the guide. */
const save = (name, lines) => {
  if (!process.argv.includes('--save')) return
  const [before, rest] = readFileSync(guide, 'utf8').split(`<!-- ${name} -->`)
  const [, after] = rest.split(`<!-- end of ${name} -->`)
  const text = [`On ${new Date().toISOString().slice(0, 10)}:`, '', ...lines].join('\n')
  writeFileSync(guide, `${before}<!-- ${name} -->\n\n${text}\n\n<!-- end of ${name} -->${after}`)
  spawnSync('npx', ['prettier', '--write', '--log-level', 'warn', guide])
}

if (existsSync(join(folder, 'dictionary.json'))) {
  const { cases, right, explained, files: count } = runStructuredFields(folder)
  save('structured fields', [
    '| Files | Cases | As the file says | Decimals such as 1.0, written as 1 |',
    '| -- | -- | -- | -- |',
    `| ${count} | ${cases} | ${right} | ${explained} |`,
  ])
  process.exit(right + explained === cases ? 0 : 1)
}

const others = []
const rows = []
for (const [name, of] of Object.entries(files)) {
  const { testGroups } = JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8'))
  let [cases, asSaid, either, skipped] = [0, 0, 0, 0]
  const before = others.length
  for (const group of testGroups) {
    const check = of(group)
    for (const test of group.tests) {
      if (check === undefined) {
        skipped++
        continue
      }
      cases++
      const accepted = await check(test)
      if (test.result === 'acceptable') either++
      if (test.result === 'acceptable' || accepted === (test.result === 'valid')) {
        asSaid++
        continue
      }
      const why = explained[name]?.[test.tcId]
      others.push(why !== undefined)
      const what = `${name} ${test.tcId}, ${group.comment ?? group.type}, ${test.comment}`
      console.log(`  ${what}: ${test.result}, and ${accepted ? 'accepted' : 'refused'}: ${why ?? 'NOT EXPLAINED'}`)
    }
  }
  const more = [either > 0 && `${either} may be either`, skipped > 0 && `${skipped} not of a JSON Web Signature`]
  console.log([`${name}: ${asSaid} of ${cases}`, ...more.filter(Boolean)].join('; '))
  const differing = others.length - before
  rows.push(
    `| \`${name.replace(/_test$/, '')}\` | ${asSaid} of ${cases} | ${differing === 0 ? 0 : `${differing}, explained below`} | ${skipped} |`,
  )
}
const own = await signedHere()
console.log(`signed here, with crit or another length: ${own.right} of ${own.cases}`)
save('wycheproof', [
  '| File | As the file says | Cases of another result | Cases of another form |',
  '| -- | -- | -- | -- |',
  ...rows,
  `| signed by the command: \`crit\`, lengths | ${own.right} of ${own.cases} | ${own.cases - own.right} | 0 |`,
])
const byJose = await runJose(folder)
const only = byJose.others.filter((id) => explained.json_web_signature_test[id] === undefined)
const [same, counted] = [byJose.others.length - only.length, byJose.cases - byJose.others.length]
const version = require('jose/package.json').version
console.log(
  `jose ${version}, json_web_signature: ${counted} of ${byJose.cases}; not alone ${same}, alone ${only.join(', ')}`,
)
save('jose', [
  `jose ${version} was given \`json_web_signature\` by the same rules: ${counted} of ${byJose.cases} cases are as the file says. Of the others,`,
  `${same} are of those above. Here the other ${only.length} (${only.join(', ')}) are as the file says.`,
])
process.exitCode = others.every(Boolean) && own.right === own.cases ? 0 : 1
