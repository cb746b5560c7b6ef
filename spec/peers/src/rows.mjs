/**
 * The rows of the matrix. Each is what must hold, and how it is tried. It returns what happened in a few words; `ok` says
 * whether that is what must happen.
 */
import { newBrowser } from './browser.mjs'
import { NoRedirect, whoIn } from './sites.mjs'

const count = (asked, request, from) => asked.slice(from).filter((one) => one === request).length

/** What a row can do with one site. */
export const actionsOf = ({ origin, site, provider }) => {
  const isCallback = (url) => url.startsWith(`${origin}/`) && new URL(url).searchParams.has('state')
  const toCallback = async (browser, returnTo) => browser.follow(await site.begin(browser, returnTo), isCallback)
  const finish = (browser, url) => browser.send(url)
  const who = async (browser) => whoIn((await browser.send(`${origin}/`)).body)
  const whole = async (browser, change = (url) => url) => {
    const url = await toCallback(browser)
    const page = await finish(browser, change(url))
    return { page, who: await who(browser) }
  }
  return { origin, site, provider, toCallback, finish, who, whole }
}

const inOrOut = (user) => (user === undefined ? 'out' : 'in')

const isAnswer = ({ status }) => status < 500

const withParameters = (url, change) => {
  const changed = new URL(url)
  change(changed.searchParams)
  return changed.href
}

// What is wrong with a response must be refused, and be no 500 that blames the application
const refusedRow = (name, wrong) => ({
  name,
  run: async ({ whole, provider }) => {
    provider.state.wrong = wrong
    const { page, who } = await whole(newBrowser())
    return { ok: who === undefined && isAnswer(page), what: `${page.status} ${inOrOut(who)}` }
  },
})

const down = async (provider, run) => {
  await provider.stop()
  try {
    return await run()
  } finally {
    await provider.start()
  }
}

const statusOf = async (run) => {
  try {
    return await run()
  } catch (error) {
    if (error instanceof NoRedirect) return error.page
    throw error
  }
}

const outage = ({ status, headers, given }) => ({
  ok: status === 503,
  what: `${status}${headers.has('retry-after') ? ' Retry-After' : ''}${given === null ? '' : ` to ${new URL(given, 'http://localhost').pathname}`}`,
})

export const rows = [
  {
    name: 'a sign-in',
    run: async ({ whole }) => {
      const { page, who } = await whole(newBrowser())
      return { ok: who === 'anna', what: `${page.status} ${inOrOut(who)}` }
    },
  },
  {
    name: 'two tabs begin, the first one finishes',
    run: async ({ toCallback, finish, who }) => {
      const browser = newBrowser()
      const first = await toCallback(browser)
      await toCallback(browser)
      const page = await finish(browser, first)
      const user = await who(browser)
      return { ok: user === 'anna', what: `${page.status} ${inOrOut(user)}` }
    },
  },
  {
    name: 'then the second one',
    run: async ({ toCallback, finish, who }) => {
      const browser = newBrowser()
      const [first, second] = [await toCallback(browser), await toCallback(browser)]
      await finish(browser, first)
      const page = await finish(browser, second)
      const user = await who(browser)
      return { ok: user === 'anna' && page.status < 400, what: `${page.status} ${inOrOut(user)}` }
    },
  },
  {
    name: 'twenty tabs begin: bytes of cookies',
    run: async ({ toCallback, origin }) => {
      const browser = newBrowser()
      await toCallback(browser)
      const one = browser.cookieLength(origin)
      for (let tab = 1; tab < 20; tab++) await toCallback(browser)
      const twenty = browser.cookieLength(origin)
      return { ok: twenty < one + 100, what: `${one}, then ${twenty}` }
    },
  },
  {
    name: 'the callback is loaded again',
    run: async ({ toCallback, finish, who, provider }) => {
      const browser = newBrowser()
      const url = await toCallback(browser)
      await finish(browser, url)
      const [asked, reported] = [provider.asked.length, provider.reported.length]
      const page = await finish(browser, url)
      const user = await who(browser)
      const isAskedAgain = count(provider.asked, 'POST /token', asked) > 0
      const isRevoked = provider.reported.slice(reported).includes('grant.revoked')
      const isError = /error|failed/.test(page.given ?? '')
      const effect = isRevoked ? ', grant revoked' : isAskedAgain ? ', code sent again' : isError ? ', error page' : ''
      return {
        ok: page.status < 400 && user === 'anna' && !isAskedAgain && !isError,
        what: `${page.status} ${inOrOut(user)}${effect}`,
      }
    },
  },
  {
    name: 'the callback comes twice at once',
    run: async ({ toCallback, finish, who, provider }) => {
      const browser = newBrowser()
      const url = await toCallback(browser)
      const [asked, reported] = [provider.asked.length, provider.reported.length]
      const pages = await Promise.all([finish(browser, url), finish(browser, url)])
      const user = await who(browser)
      const sent = count(provider.asked, 'POST /token', asked)
      const isRevoked = provider.reported.slice(reported).includes('grant.revoked')
      return {
        ok: user === 'anna' && sent === 1 && pages.every(({ status }) => status < 400),
        what: `${pages.map(({ status }) => status).join(' and ')} ${inOrOut(user)}${isRevoked ? ', grant revoked' : ''}`,
      }
    },
  },
  {
    name: 'the callback comes in another browser',
    run: async ({ toCallback, finish, who }) => {
      const url = await toCallback(newBrowser())
      const other = newBrowser()
      const page = await finish(other, url)
      const user = await who(other)
      return { ok: user === undefined && isAnswer(page), what: `${page.status} ${inOrOut(user)}` }
    },
  },
  {
    name: 'a client that knew the cookies before the sign-in is signed in, too',
    run: async ({ toCallback, finish, who }) => {
      const browser = newBrowser()
      const url = await toCallback(browser)
      const other = browser.copy()
      await finish(browser, url)
      const user = await who(other)
      return { ok: user === undefined, what: user === undefined ? 'no' : 'yes' }
    },
  },
  {
    name: 'iss is of another issuer',
    run: async ({ whole }) => {
      const change = (url) => withParameters(url, (given) => given.set('iss', 'https://evil.example'))
      const { page, who } = await whole(newBrowser(), change)
      return { ok: who === undefined && isAnswer(page), what: `${page.status} ${inOrOut(who)}` }
    },
  },
  {
    name: 'iss is left out, though it was promised',
    run: async ({ whole }) => {
      const { page, who } = await whole(newBrowser(), (url) => withParameters(url, (given) => given.delete('iss')))
      return { ok: who === undefined && isAnswer(page), what: `${page.status} ${inOrOut(who)}` }
    },
  },
  {
    name: 'the user cancels',
    run: async ({ whole, provider }) => {
      const { page, who } = await whole(newBrowser(), (url) =>
        withParameters(url, (given) => {
          given.delete('code')
          given.set('error', 'access_denied')
          given.set('iss', provider.issuer)
        }),
      )
      return { ok: who === undefined && isAnswer(page), what: `${page.status} ${inOrOut(who)}` }
    },
  },
  {
    name: 'the text of an error is shown',
    run: async ({ whole, provider }) => {
      const { page } = await whole(newBrowser(), (url) =>
        withParameters(url, (given) => {
          given.delete('code')
          given.set('error', 'server_error')
          given.set('error_description', 'call-this-number')
          given.set('iss', provider.issuer)
        }),
      )
      const isShown = `${page.body} ${page.given}`.includes('call-this-number')
      return { ok: !isShown, what: isShown ? 'yes' : 'no' }
    },
  },
  {
    name: 'the provider is down at the callback',
    run: async ({ toCallback, finish, provider }) => {
      const browser = newBrowser()
      const url = await toCallback(browser)
      return down(provider, async () => outage(await finish(browser, url)))
    },
  },
  {
    name: 'the token endpoint answers 500',
    run: async ({ toCallback, finish, provider }) => {
      const browser = newBrowser()
      const url = await toCallback(browser)
      provider.state.wrong = 'error'
      return outage(await finish(browser, url))
    },
  },
  {
    name: 'the application starts while the provider is down, and a user begins',
    restarts: true,
    run: ({ restarted, provider }) =>
      down(provider, async () => {
        const site = await restarted().catch(() => undefined)
        if (site === undefined) return { ok: false, what: 'does not start' }
        const page = await statusOf(async () => {
          const url = await site.begin(newBrowser())
          return url.startsWith(provider.issuer) ? undefined : { status: 302, headers: new Headers(), given: url }
        })
        // a library that is configured by hand asks nothing
        return page === undefined ? { ok: true, what: 'leads there' } : outage(page)
      }),
  },
  {
    name: 'then the provider is up again',
    restarts: true,
    run: async ({ restarted, provider, whole }) => {
      await down(provider, async () => {
        const site = await restarted()
        await site.begin(newBrowser()).catch(() => undefined)
      }).catch(() => undefined)
      const { page, who } = await whole(newBrowser())
      return { ok: who === 'anna', what: `${page.status} ${inOrOut(who)}` }
    },
  },
  refusedRow('an ID token that is not signed', 'unsigned'),
  refusedRow('an ID token that another key signed', 'signed by another key'),
  refusedRow('an ID token with an empty sub', 'of an empty sub'),
  refusedRow('an ID token with another nonce', 'with another nonce'),
  refusedRow('an ID token that has expired', 'that has expired'),
  refusedRow('an ID token for another client', 'for another client'),
  ...['https://evil.example/', '//evil.example/', '/\\evil.example/'].map((returnTo) => ({
    name: `the return path is \`${returnTo}\``,
    run: async ({ origin, site, toCallback, finish }) => {
      if (site.returns === false) return { ok: undefined, what: 'has none' }
      const browser = newBrowser()
      const page = await statusOf(async () => finish(browser, await toCallback(browser, returnTo)))
      const leads = page.given === null ? undefined : new URL(page.given, origin).origin
      const isLed = leads !== undefined && leads !== origin
      return { ok: !isLed, what: isLed ? 'followed' : page.given === null ? `${page.status}` : 'not followed' }
    },
  })),
  {
    name: 'a prefetch begins',
    run: async ({ site }) => {
      if (site.begins === 'POST') return { ok: true, what: 'begins by POST' }
      const browser = newBrowser()
      const page = await statusOf(async () => {
        await site.begin(browser, '/', { 'Sec-Purpose': 'prefetch' })
        return undefined
      })
      return page === undefined ? { ok: false, what: 'begins' } : { ok: page.status < 500, what: `${page.status}` }
    },
  },
]
