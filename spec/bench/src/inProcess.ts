/** Measures in a separate process, so that other measurements do not affect its compiled code. */
import { spawn } from 'node:child_process'

/** The JSON that a module prints when it is run with these arguments. Rejects when the process fails. */
export const inProcess = (
  file: string,
  args: ReadonlyArray<string>,
  flags: ReadonlyArray<string> = [],
): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...flags, file, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    child.on('error', reject)
    child.on('close', (code, signal) => {
      if (code === 0) resolve(JSON.parse(text))
      else reject(new Error(`${file} ${args.join(' ')} ended with ${code ?? signal}`))
    })
  })
