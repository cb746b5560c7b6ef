/** The template "site" for one test, on any database, with the mails that it sends. */
import { onTestFinished } from 'vitest'
import { site } from '../../../examples/create/templates/site/src/app.js'
import { settingsIn } from '../../../examples/create/templates/site/src/settings.js'
import { openDatabase } from '../../../examples/create/templates/site/src/store.js'
import { taken } from '../runs/taken.js'
import { reserved } from '../servers/server.js'
import { userAgent, type Page } from '../servers/userAgent.js'

export type TemplateSite = Awaited<ReturnType<typeof templateSite>>

interface TemplateSiteOptions {
  readonly url?: string
  readonly redisUrl?: string | undefined
  readonly env?: Readonly<Record<string, string>>
}

/** Serves it until the test ends. Each call is as another process. */
export const templateSite = async (options: TemplateSiteOptions = {}) => {
  const { url = 'file::memory:', redisUrl, env = {} } = options
  const links: string[] = []
  /** All mails: to whom, and the subject. */
  const mails: Array<readonly [to: string, subject: string]> = []
  const database = await openDatabase(url, redisUrl)
  // what is registered last ends first: the server
  onTestFinished(() => database.close())
  const { port, serve } = await reserved()
  const origin = `http://localhost:${port}`
  const send = async (to: string, subject: string, text: string): Promise<void> => {
    mails.push([to, subject])
    links.push(...(/http\S+/.exec(text) ?? []))
  }
  serve((await site(settingsIn({ ORIGIN: origin, ...env }), database, send)).callback())
  /** The link of the next mail that has one. */
  const link = () => taken(links)
  return { origin, mails, link }
}

/** A browser at the site, without scripts: forms, and the heading and the message of the page that follows. */
export const browserAt = ({ origin }: Pick<TemplateSite, 'origin'>) => {
  const { send, open } = userAgent()
  const seen = ({ status, body, location }: Page) => ({
    status,
    location: location?.replace(origin, ''),
    heading: /<h1>(.*?)<\/h1>/s.exec(body)?.[1],
    said: /<p role="(?:alert|status)"[^>]*>(.*?)<\/p>/s.exec(body)?.[1],
    body,
  })
  const headers = { Accept: 'text/html', Origin: origin, 'Sec-Fetch-Site': 'same-origin', 'Sec-Fetch-Mode': 'navigate' }
  return {
    send,
    get: async (path: string) => seen(await open(new URL(path, origin).href)),
    post: async (path: string, fields: Readonly<Record<string, string>> = {}, more: Record<string, string> = {}) =>
      seen(
        await send(origin + path, {
          method: 'POST',
          body: new URLSearchParams(fields),
          headers: { ...headers, ...more },
        }),
      ),
  }
}

export type BrowserAtSite = ReturnType<typeof browserAt>

/** Makes an account by the link of a mail. */
export const signUp = async (browser: BrowserAtSite, { link }: TemplateSite, email: string, password: string) => {
  await browser.post('/sign-up', { address: email })
  return browser.post('/password', { ...fieldsOf(await link()), password })
}

/** The members of a link, as its page sends them. */
export const fieldsOf = (link: string): Record<string, string> => Object.fromEntries(new URL(link).searchParams)
