/** Measures in a separate process, so that other measurements do not affect its compiled code. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

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

/** Prints the JSON of a measurement, and ends the process, whatever it has open. */
export const printed = async (measure: () => unknown): Promise<void> => {
  process.stdout.write(JSON.stringify(await measure()), () => process.exit(0))
}

/**
 * Measures in a process of its own: runs the module at this address, which must have called this function when it was
 * loaded, with the arguments as JSON. There it measures, prints the figures and ends.
 */
export const apart = <Given extends ReadonlyArray<unknown>, A>(
  address: string,
  measure: (...given: Given) => A | Promise<A>,
  flags: ReadonlyArray<string> = [],
): ((...given: Given) => Promise<A>) => {
  const file = fileURLToPath(address)
  if (process.argv[1] === file) {
    // Safe: the function below wrote it. The module is loaded whole before it measures
    setImmediate(() => void printed(() => measure(...(JSON.parse(process.argv[2] ?? '[]') as Given))))
  }
  // Safe: `measure` returned it
  return async (...given) => (await inProcess(file, [JSON.stringify(given)], flags)) as A
}

/** The results of so many calls, one after another. */
export const oneByOne = async <A>(count: number, call: (at: number) => Promise<A>): Promise<ReadonlyArray<A>> => {
  const all: A[] = []
  for (let at = 0; at < count; at++) all.push(await call(at))
  return all
}
