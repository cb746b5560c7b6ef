// Passkeys on the pages: conditional UI, a button that signs in, and a button that registers.
const post = async (path, body = {}) => {
  const headers = { 'content-type': 'application/json', accept: 'application/json' }
  const response = await fetch(path, { method: 'POST', headers, body: JSON.stringify(body) })
  const answer = await response.json()
  if (!response.ok) throw new Error(answer.reason)
  return answer
}
const say = (text) => {
  const place = document.querySelector('#passkey-failed')
  if (place !== null) place.textContent = text
}
const hasPasskeys = typeof window.PublicKeyCredential?.parseRequestOptionsFromJSON === 'function'

const signInButton = document.querySelector('#passkey')
const signIn = async (more) => {
  const options = await post('/sign-in/passkey/options', { returnTo: signInButton.dataset.returnTo })
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options)
  const credential = await navigator.credentials.get({ publicKey, ...more })
  const { returnTo } = await post('/sign-in/passkey', credential.toJSON())
  location.assign(returnTo)
}

// The browser offers passkeys in the field for the name. Before a challenge ends, the page asks again
let waiting
const offer = async () => {
  waiting = new AbortController()
  const { signal } = waiting
  const timer = setTimeout(() => waiting.abort('again'), 240_000)
  try {
    await signIn({ mediation: 'conditional', signal })
  } catch (error) {
    if (signal.reason === 'again' || error.message === 'late') offer()
  } finally {
    clearTimeout(timer)
  }
}

if (hasPasskeys && signInButton !== null) {
  signInButton.hidden = false
  signInButton.addEventListener('click', () => {
    say('')
    // only one question at a time
    waiting?.abort()
    signIn().catch(() => {
      say('The passkey was not accepted. Try again, or sign in with your password.')
      offer()
    })
  })
  if (await PublicKeyCredential.isConditionalMediationAvailable?.()) offer()
}

const registerButton = document.querySelector('#register')
if (hasPasskeys && registerButton !== null) {
  registerButton.hidden = false
  registerButton.addEventListener('click', async () => {
    try {
      const options = await post('/passkeys/options')
      const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options)
      const credential = await navigator.credentials.create({ publicKey })
      await post('/passkeys', credential.toJSON())
      say('The passkey was added.')
    } catch (error) {
      say(error.message === 'insufficient' ? 'Prove again that it is you, below.' : 'No passkey was added.')
    }
  })
}
