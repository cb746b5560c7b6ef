/**
 * Runs the site of traced/site.mjs as a process, with a tracer or without. It needs `dist`, like the published package.
 */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const root = fileURLToPath(new URL('../../../', import.meta.url))

// There is no agent, and none is looked for, so nothing leaves this machine
const offline = {
  DD_TRACE_STARTUP_LOGS: 'false',
  DD_TRACE_AGENT_URL: 'http://127.0.0.1:9',
  DD_INSTRUMENTATION_TELEMETRY_ENABLED: 'false',
  DD_REMOTE_CONFIGURATION_ENABLED: 'false',
  DD_CRASHTRACKING_ENABLED: 'false',
  DD_RUNTIME_METRICS_ENABLED: 'false',
  DD_TRACE_LOG_LEVEL: 'error',
}

/** What one router of the site answers and reports about itself. */
export interface Site {
  readonly before: Readonly<Record<'audit' | 'openApi' | 'seal' | 'late', unknown>>
  readonly after: Site['before']
  readonly answers: Readonly<Record<string, readonly [status: number, body: string, hooks: number]>>
  readonly answersThen: Site['answers']
  readonly answersSealed: Site['answers']
  readonly remounted: Site['answers']
  readonly mounted: string
  /** What the tracer saw. */
  readonly traced: ReadonlyArray<string>
}

/** An application, a plain router, and one with middleware that is listed for `seal`. */
export type Sites = Readonly<Record<'api' | 'plain' | 'listed', Site>>

/** Starts the site with what `--import` names, and reads its report. */
export const siteUnder = async (...imports: ReadonlyArray<string>): Promise<Sites> => {
  const args = [...imports.flatMap((each) => ['--import', each]), 'spec/support/sites/traced/site.mjs']
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    cwd: root,
    env: { ...process.env, ...offline, NODE_ENV: 'production' },
    timeout: 60_000,
    maxBuffer: 10 ** 7,
  })
  // Safe: it is what site.mjs prints
  return JSON.parse(stdout) as Sites
}
