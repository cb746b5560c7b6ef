// Gives the file json_web_signature of Project Wycheproof to jose, by the rules of vectors.mjs: `npm run vectors -- FOLDER` runs it, too.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { compactVerify, importJWK } from 'jose'

const verified = async (token, keys) => {
  for (const key of keys) {
    try {
      const { k, alg } = key
      const imported = k === undefined ? await importJWK(key, alg) : Buffer.from(k, 'base64url')
      await compactVerify(token, imported, alg === undefined ? {} : { algorithms: [alg] })
      return true
    } catch {
      // the next key
    }
  }
  return false
}

/** How many cases are as the file says, of how many, and the numbers of the others. */
export const runJose = async (folder) => {
  const { testGroups } = JSON.parse(readFileSync(join(folder, 'json_web_signature_test.json'), 'utf8'))
  const others = []
  let cases = 0
  for (const group of testGroups) {
    const given = group.public ?? group.private
    for (const { tcId, jws, result } of group.tests) {
      cases++
      if ((await verified(jws, given.keys ?? [given])) !== (result === 'valid')) others.push(tcId)
    }
  }
  return { cases, others }
}
