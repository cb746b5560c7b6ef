/** The command without a process: its arguments, and SARIF. */
import Router from '@koa/router'
import { Ajv } from 'ajv'
import * as E from 'fp-ts/lib/Either.js'
import { apiApp, withAuth } from 'koa-with-auth'
import { audit } from 'koa-with-auth/audit'
import { describe, expect, it } from 'vitest'
import { differencesOf } from '../../src/audit/Difference.js'
import { linesOf } from '../../src/audit/policy.js'
import { lineFrom } from '../support/papers/policyLines.js'
import { documentDifferences } from '../../src/command/document.js'
import { findingsOf, findingsOfDifferences } from '../../src/audit/findings.js'
import { optionsFrom } from '../../src/command/perform.js'
import { sarifOf } from '../../src/command/sarif.js'
import { bearer, cookie, guard, handle, open } from '../support/models/audits.js'
import { sarifSchema } from '../support/papers/sarifSchema.js'

const router = () => withAuth(bearer)(new Router()).get('/me', handle)

describe('arguments', () => {
  // Safe: an asymmetric matcher
  const tables = (type: string) =>
    expect.stringMatching(new RegExp(`^create table if not exists auth_texts \\(\\s+id ${type}`)) as string
  it.each<[string, object]>([
    ['audit a.js', { module: 'a.js', exportName: undefined, task: { _tag: 'Print' }, format: 'text' }],
    ['audit a.js --export api --json', { exportName: 'api', format: 'json' }],
    ['audit --check=x a.js --sarif', { module: 'a.js', task: { _tag: 'Check', file: 'x' }, format: 'sarif' }],
    ['audit a.js --write auth.lock', { task: { _tag: 'Write', file: 'auth.lock' } }],
    ['audit a.js --openapi api.json', { task: { _tag: 'OpenApi', file: 'api.json' } }],
    ['audit a.js --help', { _tag: 'Help' }],
    ['--version', { _tag: 'Version' }],
    ['sql mysql', { _tag: 'Sql', text: tables('varbinary') }],
    ['sql postgres', { _tag: 'Sql', text: tables('text') }],
  ])('%s', (line, expected) => {
    expect(optionsFrom(line.split(' '))).toMatchObject(E.right(expected))
  })

  it.each<[string, string]>([
    ['seal a.js', 'no command "seal"; there are audit and sql'],
    ['sql', 'sql takes a database: koa-with-auth sql postgres, or mysql'],
    ['sql sqlite', 'sql takes a database: koa-with-auth sql postgres, or mysql'],
    ['sql postgres mysql', 'sql takes a database: koa-with-auth sql postgres, or mysql'],
    ['sql postgres --json', 'sql takes no --json'],
    ['sql postgres --schema a"b', '--schema must be a name of letters, digits, "_", "$" and "-"'],
    ['sql mysql --schema auth', 'sql mysql takes no --schema; connect to the database that has the tables'],
    ['audit a.js --schema auth', 'audit takes no --schema'],
    ['audit', 'audit takes a module: koa-with-auth audit ./dist/app.js'],
    ['audit a.js b.js', 'audit takes one module; remove "b.js"'],
    ['audit a.js --write x --check x', '--write, --check and --openapi cannot be combined'],
    ['audit a.js --json --sarif', '--json and --sarif cannot be combined'],
    ['audit a.js --write x --json', '--write cannot be combined with --json or --sarif'],
    ['audit a.js --check=', '--check is empty'],
    ['audit a.js --export=', '--export is empty'],
    ['audit a.js --chek x', "Unknown option '--chek'"],
  ])('%s: is refused', (line, why) => {
    expect(optionsFrom(line.split(' '))).toStrictEqual(E.left(why))
  })
})

describe('SARIF 2.1.0', () => {
  const validate = new Ajv().compile(sarifSchema)
  const api = apiApp({ csrf: false, docs: false })
  api.use((_ctx, next) => next())
  api.get('/:id', open, handle).get('/me', guard, handle)
  api.get('/undecided', handle).post('/csrf', withAuth(cookie), handle)
  const findings = findingsOf(audit(api))

  it('reports an undecided operation and one that is never reached as errors, and an open one as a note', () => {
    expect(findings.map(({ rule, operation: name, severity }) => [rule, name, severity])).toStrictEqual([
      ['open-operation', 'GET /:id', 'note'],
      ['answered-first', 'GET /me', 'error'],
      ['undecided-operation', 'GET /undecided', 'error'],
      ['csrf-off', 'POST /csrf', 'warning'],
      ['unguarded-middleware', 'USE /*', 'note'],
    ])
  })

  it('has a valid log for findings, differences, documents, hostile paths, and nothing', () => {
    const hostile = new Router().get('/\u001b\u202e\\[x', open, handle)
    const differences = differencesOf([], linesOf(audit(hostile))).map((one) => ({ ...one, was: undefined }))
    const compared = documentDifferences('{ "openapi": "3.1.0", "paths": {} }', [router()], audit(router()))
    const document = findingsOfDifferences(E.isRight(compared) ? compared.right : [], 'document')
    expect(document).not.toStrictEqual([])
    for (const some of [findings, findingsOfDifferences(differences as never), document, []]) {
      const log = sarifOf(some, 'auth lock%.json', '1.0.0')
      validate(log)
      expect(validate.errors).toBeNull()
      expect(JSON.stringify(log)).not.toMatch(/\\u001b|\u202e/)
    }
  })

  it('has a schema that notices an invalid log', () => {
    const log = JSON.parse(JSON.stringify(sarifOf(findings, 'a', '1'))) as {
      runs: [{ results: [Record<string, unknown>] }]
    }
    log.runs[0].results[0]['level'] = 'fatal'
    expect(validate(log)).toBe(false)
    log.runs[0].results[0]['level'] = 'error'
    expect(validate(log)).toBe(true)
    const each = log.runs[0].results.map(({ partialFingerprints }) => JSON.stringify(partialFingerprints))
    expect(new Set(each).size).toBe(each.length)
    delete log.runs[0].results[0]['message']
    expect(validate(log)).toBe(false)
  })

  it('names the file as a URI, the line of a policy file, and the operation; it doubles braces in messages', () => {
    const line = lineFrom('GET /x{/:id}; who=[bearer]; by=operation; csrf=not needed; docs=listed')!
    const was = { ...line, lineNumber: 7 }
    const log = sarifOf(findingsOfDifferences(differencesOf([was], [])), 'my lock', '1')
    const message = { text: 'GET /x{{/:id}}: was bearer, is gone' }
    const physicalLocation = { artifactLocation: { uri: 'my%20lock' }, region: { startLine: 7 } }
    const locations = [{ physicalLocation, logicalLocations: [{ fullyQualifiedName: 'GET /x{/:id}' }] }]
    const result = { ruleId: 'policy-closed', level: 'note', message, locations }
    expect(log).toMatchObject({ runs: [{ results: [result] }] })
    const elsewhere = JSON.stringify(sarifOf(findings.slice(0, 1), '/elsewhere/auth.lock', '1'))
    expect(elsewhere).toContain('"uri":"file:///elsewhere/auth.lock"')
  })
})
