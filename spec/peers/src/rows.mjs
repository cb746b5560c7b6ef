/**
 * The rows of the matrix. Each is what must hold, and how it is tried. It returns what happened in a few words; `ok` says
 * whether that is what must happen.
 */
import { newBrowser } from './browser.mjs'
import { NoRedirect, whoIn } from './sites.mjs'

/** What a row can do with one site. */
export const actionsOf = ({ origin, site, provider }) => {
  const isCallback = (url) => url.startsWith(`${origin}/`) && new URL(url).searchParams.has('state')
  const toCallback = async (browser, returnTo) => browser.follow(await site.begin(browser, returnTo), isCallback)
  const finish = (browser, url) => browser.send(url)
  const who = async (browser) => whoIn((await browser.send(`${origin}/`)).body)
  const arrive = async (browser, url) => ({ page: await finish(browser, url), user: await who(browser) })
  const whole = async (change = (url) => url) => {
    const browser = newBrowser()
    return arrive(browser, change(await toCallback(browser)))
  }
  return { origin, site, provider, toCallback, finish, who, arrive, whole }
}

const inOrOut = (user) => (user === undefined ? 'out' : 'in')
const said = ({ page, user }) => `${page.status} ${inOrOut(user)}`
const signedIn = (arrived) => ({ ok: arrived.user === 'anna', what: said(arrived) })
// It must be no 500 that blames the application
const refused = (arrived) => ({ ok: arrived.user === undefined && arrived.page.status < 500, what: said(arrived) })

const withParameters = (change) => (url) => {
  const changed = new URL(url)
  change(changed.searchParams)
  return changed.href
}
const withError = (error, description) => (provider) =>
  withParameters((given) => {
    given.delete('code')
    given.set('error', error)
    if (description !== undefined) given.set('error_description', description)
    given.set('iss', provider.issuer)
  })

const wrongAnswer =
  (wrong) =>
  async ({ whole, provider }) => {
    provider.state.wrong = wrong
    return refused(await whole())
  }

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

const returnsTo =
  (returnTo) =>
  async ({ origin, site, toCallback, finish }) => {
    if (site.returns === false) return { ok: undefined, what: 'has none' }
    const browser = newBrowser()
    const page = await statusOf(async () => finish(browser, await toCallback(browser, returnTo)))
    const leads = page.given === null ? undefined : new URL(page.given, origin).origin
    const isLed = leads !== undefined && leads !== origin
    return { ok: !isLed, what: isLed ? 'followed' : page.given === null ? `${page.status}` : 'not followed' }
  }

const whatHolds = {
  'a sign-in': async ({ whole }) => signedIn(await whole()),
  'two tabs begin, the first one finishes': async ({ toCallback, arrive }) => {
    const browser = newBrowser()
    const first = await toCallback(browser)
    await toCallback(browser)
    return signedIn(await arrive(browser, first))
  },
  'then the second one': async ({ toCallback, finish, arrive }) => {
    const browser = newBrowser()
    const [first, second] = [await toCallback(browser), await toCallback(browser)]
    await finish(browser, first)
    const { page, user } = await arrive(browser, second)
    return { ok: user === 'anna' && page.status < 400, what: said({ page, user }) }
  },
  'twenty tabs begin: bytes of cookies': async ({ toCallback, origin }) => {
    const browser = newBrowser()
    await toCallback(browser)
    const one = browser.cookieLength(origin)
    for (let tab = 1; tab < 20; tab++) await toCallback(browser)
    const twenty = browser.cookieLength(origin)
    return { ok: twenty < one + 100, what: `${one}, then ${twenty}` }
  },
  'the callback is loaded again': async ({ toCallback, finish, arrive, provider }) => {
    const browser = newBrowser()
    const url = await toCallback(browser)
    await finish(browser, url)
    const since = provider.since()
    const { page, user } = await arrive(browser, url)
    const isAskedAgain = since.tokens() > 0
    const isError = /error|failed/.test(page.given ?? '')
    const effect = since.isRevoked()
      ? ', grant revoked'
      : isAskedAgain
        ? ', code sent again'
        : isError
          ? ', error page'
          : ''
    return {
      ok: page.status < 400 && user === 'anna' && !isAskedAgain && !isError,
      what: `${said({ page, user })}${effect}`,
    }
  },
  'the callback comes twice at once': async ({ toCallback, finish, who, provider }) => {
    const browser = newBrowser()
    const url = await toCallback(browser)
    const since = provider.since()
    const pages = await Promise.all([finish(browser, url), finish(browser, url)])
    const user = await who(browser)
    const statuses = pages.map(({ status }) => status)
    return {
      ok: user === 'anna' && since.tokens() === 1 && statuses.every((status) => status < 400),
      what: `${statuses.join(' and ')} ${inOrOut(user)}${since.isRevoked() ? ', grant revoked' : ''}`,
    }
  },
  'the callback comes in another browser': async ({ toCallback, arrive }) =>
    refused(await arrive(newBrowser(), await toCallback(newBrowser()))),
  'a client that knew the cookies before the sign-in is signed in, too': async ({ toCallback, finish, who }) => {
    const browser = newBrowser()
    const url = await toCallback(browser)
    const other = browser.copy()
    await finish(browser, url)
    const user = await who(other)
    return { ok: user === undefined, what: user === undefined ? 'no' : 'yes' }
  },
  'iss is of another issuer': async ({ whole }) =>
    refused(await whole(withParameters((given) => given.set('iss', 'https://evil.example')))),
  'iss is left out, though it was promised': async ({ whole }) =>
    refused(await whole(withParameters((given) => given.delete('iss')))),
  'the user cancels': async ({ whole, provider }) => refused(await whole(withError('access_denied')(provider))),
  'the text of an error is shown': async ({ whole, provider }) => {
    const { page } = await whole(withError('server_error', 'call-this-number')(provider))
    const isShown = `${page.body} ${page.given}`.includes('call-this-number')
    return { ok: !isShown, what: isShown ? 'yes' : 'no' }
  },
  'the provider is down at the callback': async ({ toCallback, finish, provider }) => {
    const browser = newBrowser()
    const url = await toCallback(browser)
    return down(provider, async () => outage(await finish(browser, url)))
  },
  'the token endpoint answers 500': async ({ toCallback, finish, provider }) => {
    const browser = newBrowser()
    const url = await toCallback(browser)
    provider.state.wrong = 'error'
    return outage(await finish(browser, url))
  },
  'the application starts while the provider is down, and a user begins': ({ restarted, provider }) =>
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
  'then the provider is up again': async ({ restarted, provider, whole }) => {
    await down(provider, async () => {
      const site = await restarted()
      await site.begin(newBrowser()).catch(() => undefined)
    }).catch(() => undefined)
    return signedIn(await whole())
  },
  'an ID token that is not signed': wrongAnswer('unsigned'),
  'an ID token that another key signed': wrongAnswer('signed by another key'),
  'an ID token with an empty sub': wrongAnswer('of an empty sub'),
  'an ID token with another nonce': wrongAnswer('with another nonce'),
  'an ID token that has expired': wrongAnswer('that has expired'),
  'an ID token for another client': wrongAnswer('for another client'),
  'the return path is `https://evil.example/`': returnsTo('https://evil.example/'),
  'the return path is `//evil.example/`': returnsTo('//evil.example/'),
  'the return path is `/\\evil.example/`': returnsTo('/\\evil.example/'),
  'a prefetch begins': async ({ site }) => {
    if (site.begins === 'POST') return { ok: true, what: 'begins by POST' }
    const page = await statusOf(async () => {
      await site.begin(newBrowser(), '/', { 'Sec-Purpose': 'prefetch' })
      return undefined
    })
    return page === undefined ? { ok: false, what: 'begins' } : { ok: page.status < 500, what: `${page.status}` }
  },
}

export const rows = Object.entries(whatHolds).map(([name, run]) => ({ name, run }))
