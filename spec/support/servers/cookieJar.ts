/** The cookies of one browser for one site. Programs without Vitest use it, too. */
export const cookieJar = (from: Iterable<readonly [name: string, value: string]> = []) => {
  const cookies = new Map(from)
  return {
    cookies,
    /** The value of `Cookie`. */
    header: (): string => [...cookies].map((pair) => pair.join('=')).join('; '),
    /** Takes lines of `Set-Cookie`. */
    take: (lines: ReadonlyArray<string>): void => {
      for (const line of lines) {
        const [, name = '', value = ''] = /^([^=]*)=([^;]*)/.exec(line) ?? []
        if (/; *(?:expires=Thu, 01 Jan 1970|max-age=0)/i.test(line)) cookies.delete(name)
        else cookies.set(name, value)
      }
    },
  }
}
