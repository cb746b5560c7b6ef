/**
 * The script that starts Swagger UI on the docs page. It is constant: what differs between pages is in `data-`
 * attributes of its element. It does not read the address bar, except for the fragment, which only opens an
 * operation.
 *
 * Swagger UI asks for a key in a cookie but cannot send it, because scripts may not set that header. So the script puts
 * the key among the page's cookies while it is authorized, and removes it when the user leaves the page.
 */
'use strict'
;(() => {
  const element = document.getElementById('docs')
  const { document: url } = element.dataset

  const dark = window.matchMedia('(prefers-color-scheme: dark)')
  const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
  dark.addEventListener('change', follow)
  follow()

  const given = new Set()
  const setCookie = (name, value, lifetime) => {
    const secure = location.protocol === 'https:' ? '; Secure' : ''
    document.cookie = name + '=' + value + '; Path=/; SameSite=Strict' + secure + lifetime
  }
  const forget = (name) => {
    if (given.delete(name)) setCookie(name, '', '; Max-Age=0')
  }
  const isCookie = (schema) => schema !== undefined && schema.get('type') === 'apiKey' && schema.get('in') === 'cookie'
  const put = (authorized) =>
    authorized.forEach((entry) => {
      const schema = entry.get('schema')
      if (!isCookie(schema)) return
      given.add(schema.get('name'))
      // characters that end the value could add attributes to the cookie
      setCookie(schema.get('name'), String(entry.get('value')).replace(/[;\r\n]/g, ''), '')
    })
  const putAfter = (act, system) => (payload) => {
    act(payload)
    put(system.authSelectors.authorized())
  }
  const wrapActions = {
    authorize: putAfter,
    restoreAuthorization: putAfter,
    logout: (act, system) => (names) => {
      const authorized = system.authSelectors.authorized()
      act(names)
      for (const name of names) {
        const schema = authorized.getIn([name, 'schema'])
        if (isCookie(schema)) forget(schema.get('name'))
      }
    },
    // each field of the dialog takes the focus; without this the last one keeps it, with the others out of sight
    showDefinitions: (act) => (payload) => {
      act(payload)
      setTimeout(() => {
        element.querySelector('.dialog-ux .modal-ux-content')?.scrollTo(0, 0)
        element.querySelector('.dialog-ux input')?.focus()
      })
    },
  }
  window.addEventListener('pagehide', () => [...given].forEach(forget))

  window.SwaggerUIBundle({
    url,
    domNode: element,
    presets: [window.SwaggerUIBundle.presets.apis],
    plugins: [() => ({ statePlugins: { auth: { wrapActions } } })],
    layout: 'BaseLayout',
    deepLinking: true,
    defaultModelsExpandDepth: 0,
    displayRequestDuration: true,
    persistAuthorization: false,
    queryConfigEnabled: false,
    validatorUrl: null,
  })
})()
