/** The style and the script of the pages. */

export const style = `:root {
  color-scheme: light dark;
  --main: light-dark(#3538cd, #a4bcfd);
  --on-main: light-dark(#fff, #101845);
  --text: light-dark(#181d27, #ecedf0);
  --quiet: light-dark(#535862, #a4a7ae);
  --line: light-dark(#e3e5ea, #2e323b);
  --edge: light-dark(#858b98, #7d838f);
  --page: light-dark(#f6f7f9, #0f1115);
  --card: light-dark(#fff, #191c22);
  --bad: light-dark(#b42318, #fda29b);
  --good: light-dark(#067647, #75e0a7);
}
* { box-sizing: border-box }
body { margin: 0; font: 1rem/1.5 system-ui, sans-serif; background: var(--page); color: var(--text) }
header { display: flex; justify-content: space-between; align-items: center; padding: .9rem 1.5rem; background: var(--card); border-bottom: 1px solid var(--line) }
header a { color: var(--text); text-decoration: none; font-weight: 500 }
.brand { display: flex; align-items: center; gap: .6rem; font-weight: 700 }
.brand::before { content: ''; width: 1.4rem; height: 1.4rem; border-radius: .4rem; background: linear-gradient(135deg, #6172f3, #9b5cf6) }
main { width: min(27rem, 100% - 2rem); margin: clamp(1.5rem, 9vh, 6rem) auto; padding: 2rem; background: var(--card); border: 1px solid var(--line); border-radius: 1rem; box-shadow: 0 1px 2px rgb(16 24 40 / .06) }
.wide { width: min(44rem, 100% - 2rem); margin-block: 2.5rem; padding: 0; background: none; border: 0; box-shadow: none }
section { margin: 1.5rem 0; padding: .75rem 1.5rem; background: var(--card); border: 1px solid var(--line); border-radius: 1rem; box-shadow: 0 1px 2px rgb(16 24 40 / .06) }
h1 { margin: 0 0 .5rem; font-size: 1.6rem; line-height: 1.25; letter-spacing: -.01em; overflow-wrap: anywhere }
h1, b { hyphens: auto }
h2 { margin: .5rem 0; font-size: 1.05rem }
h1 + :not(.text, section) { margin-top: 1.25rem }
p { margin: 0 0 1rem }
a { color: var(--main) }
small, .text, .foot { color: var(--quiet) }
.text { margin-bottom: 1.5rem; overflow-wrap: anywhere }
.foot { margin: 1.25rem 0 0; text-align: center; font-size: .95rem }
label { display: block; margin-bottom: 1.1rem; font-size: .9rem; font-weight: 600 }
input { display: block; width: 100%; min-height: 2.75rem; margin-top: .35rem; padding: .5rem .8rem; font: inherit; font-weight: 400; font-size: 1rem; color: inherit; background: none; border: 1px solid var(--edge); border-radius: .6rem }
input[readonly] { color: var(--quiet); background: var(--page); border-color: var(--line) }
.choice { font-weight: 400 }
.choice input { display: inline; width: auto; min-height: 0; margin: 0 .5rem 0 0; accent-color: var(--main) }
button, .button { display: inline-block; width: 100%; min-height: 2.75rem; padding: .55rem 1.1rem; font: inherit; font-weight: 600; text-align: center; text-decoration: none; cursor: pointer; color: var(--on-main); background: var(--main); border: 1px solid transparent; border-radius: .6rem }
button:hover, .button:hover { filter: brightness(1.08) }
.second { color: var(--text); background: var(--card); border-color: var(--edge) }
.second:hover { background: var(--page) }
.danger { color: light-dark(#fff, #3b0a06); background: var(--bad) }
.warning { color: var(--bad) }
main > .second { margin-top: .75rem }
.buttons { display: flex; gap: .75rem; margin: 0 }
.buttons > * { flex: 1 1 auto; width: auto }
ul { margin: 0; padding: 0; list-style: none }
li { display: flex; flex-wrap: wrap; gap: .75rem; align-items: center; justify-content: flex-end; padding: .8rem 0; border-top: 1px solid var(--line); overflow-wrap: anywhere }
li:first-child { border-top: 0 }
li div { flex: 1 1 9rem; min-width: 0 }
li small { display: block; font-size: .9rem }
li form, li .button, li button { flex: none; width: auto; min-height: 2.4rem; padding-block: .4rem; font-size: .9rem }
li form { padding: 0; min-height: 0 }
.codes li { justify-content: center }
.codes { display: grid; grid-template-columns: repeat(auto-fit, minmax(16rem, 1fr)); margin-bottom: 1.5rem }
code { font: .95rem ui-monospace, monospace }
.qr { display: block; width: 12rem; margin: 0 auto 1rem; padding: .6rem; background: #fff; border-radius: .6rem }
[role=alert], [role=status] { padding: .7rem 1rem; border-radius: .6rem; border: 1px solid; font-weight: 500; margin-bottom: 1.25rem }
[role=alert] { color: var(--bad); background: light-dark(#fef3f2, #2a1412) }
[role=status] { color: var(--good); background: light-dark(#ecfdf3, #0c2418) }
:focus-visible { outline: 3px solid var(--main); outline-offset: 2px }
[hidden] { display: none }
@media (max-width: 30rem) { main { padding: 1.5rem } section { padding: .5rem 1.1rem } .buttons { flex-direction: column } }
`

export const script = `const post = async (path, body = {}) => {
  const answer = await fetch(path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) })
  if (!answer.ok) throw new Error(path)
  return answer.json()
}
const on = (id, isPossible, run) => {
  const button = document.getElementById(id)
  if (!button || !isPossible) return
  button.hidden = false
  button.addEventListener('click', () => run(button))
}
const hasPasskeys = 'parseRequestOptionsFromJSON' in (window.PublicKeyCredential ?? {})
// who must sign in once more, or says no, is led to the account
const leadTo = (path) => path.then((to) => location.assign(to), () => location.assign('/account'))
on('passkey', hasPasskeys, () => leadTo((async () => {
  const returnTo = document.querySelector('[name=returnTo]')?.value
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(await post('/passkey/options', { returnTo }))
  return (await post('/passkey', (await navigator.credentials.get({ publicKey })).toJSON())).returnTo
})()))
on('register', hasPasskeys, () => leadTo((async () => {
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(await post('/account/passkey/options'))
  await post('/account/passkey', (await navigator.credentials.create({ publicKey })).toJSON())
  return '/account'
})()))
on('copy', navigator.clipboard, async (button) => {
  const codes = [...document.querySelectorAll('.codes code')].map((one) => one.textContent)
  await navigator.clipboard.writeText(codes.join('\\n'))
  button.textContent += ' ✓'
})
// password managers forget passkeys that were removed, and learn the new address
const signals = JSON.parse(document.querySelector('[data-signals]')?.dataset.signals ?? '{}')
for (const [name, data] of Object.entries(signals)) window.PublicKeyCredential?.[name]?.(data)
`
