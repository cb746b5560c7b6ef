/** Runs common OpenAPI tools on a document: a validator, a linter, a generator of types. */
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { RouterInstance } from '@koa/router'
import { Validator } from '@seriousme/openapi-schema-validator'
import type Koa from 'koa'
import type { OpenAPIV3_1 } from 'openapi-types'
import openapiTS, { astToString, type OpenAPI3 } from 'openapi-typescript'

/** The routers that an application serves, in order. */
export const routersOf = ({ middleware }: Koa): RouterInstance[] =>
  middleware.flatMap((one) => ('router' in one ? [one.router as RouterInstance] : []))

/** The errors that `@seriousme/openapi-schema-validator` finds; undefined if the document is valid. */
export const invalidIn = async (document: OpenAPIV3_1.Document): Promise<unknown> => {
  const { valid, errors } = await new Validator().validate(
    JSON.parse(JSON.stringify(document)) as Record<string, unknown>,
  )
  return valid ? undefined : errors
}

interface RedoclyReport {
  readonly problems: ReadonlyArray<{
    readonly severity: 'error' | 'warn'
    readonly ruleId: string
    readonly message: string
    readonly location?: ReadonlyArray<{ readonly pointer?: string }>
  }>
}

const redocly = join(dirname(createRequire(import.meta.url).resolve('@redocly/cli/package.json')), 'bin', 'cli.js')

/** The findings of `redocly lint` with these rules beside its recommended ones. It fetches and reports nothing. */
export const lint = async (document: OpenAPIV3_1.Document, rules: Readonly<Record<string, unknown>> = {}) => {
  const folder = await mkdtemp(join(tmpdir(), 'lint-'))
  try {
    const [file, config] = [join(folder, 'openapi.json'), join(folder, 'redocly.yaml')]
    await writeFile(file, JSON.stringify(document, null, 2))
    // JSON is valid YAML
    await writeFile(config, JSON.stringify({ extends: ['recommended'], telemetry: 'off', rules }))
    const env = {
      ...process.env,
      REDOCLY_TELEMETRY: 'off',
      REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true',
      // A port without a server: requests to another host fail
      HTTP_PROXY: 'http://127.0.0.1:9',
      HTTPS_PROXY: 'http://127.0.0.1:9',
    }
    const report = await new Promise<string>((resolve, reject) => {
      const args = [redocly, 'lint', file, '--config', config, '--format', 'json', '--max-problems', '1000']
      execFile(process.execPath, args, { cwd: folder, env, maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
        // It exits with 1 if it found errors, and still reports them
        if (stdout.includes('"problems"')) resolve(stdout)
        else reject(error ?? new Error(stderr))
      })
    })
    const { problems } = JSON.parse(report.slice(report.indexOf('{'))) as RedoclyReport
    return problems.map(({ severity, ruleId, message, location }) => {
      return { severity, ruleId, message, where: location?.[0]?.pointer }
    })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The module of types that `openapi-typescript` makes of a document. */
export const typesOf = async (document: OpenAPIV3_1.Document): Promise<string> =>
  // Safe: a document of OpenAPI 3.1, in another library's types
  astToString(await openapiTS(JSON.parse(JSON.stringify(document)) as OpenAPI3, { silent: true }))
