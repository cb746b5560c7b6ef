// In the browser: the search of typedoc lists titles of pages. This adds the heading under which a page has what was typed, and a
// line of its text, and leads there. The texts (assets/passages.js) are loaded at the first search.
const root = document.documentElement
const results = document.getElementById('tsd-search-results')
const field = document.getElementById('tsd-search-input')

const loaded = () => {
  if (window.passages !== undefined || document.getElementById('passages') !== null) return
  const script = Object.assign(document.createElement('script'), { id: 'passages', onload: show })
  script.src = `${root.dataset.base.replace(/\/?$/, '/')}assets/passages.js`
  document.head.append(script)
}

// Where most of the words are: a word counts most in a heading, least in code, and at the same number the first passage wins
const has = (text, word) => Number(text.toLowerCase().includes(word))
const bestOf = (passages, words) => {
  const score = ({ heading = '', text, code = '' }) =>
    words.reduce((sum, word) => sum + 3 * has(heading, word) + 2 * has(text, word) + has(code, word), 0)
  return passages.reduce((best, one) => (score(one) > score(best) ? one : best))
}

// The line that has a word, with a part of the lines around it
const lineOf = (text, words) => {
  const found = words.map((word) => text.toLowerCase().indexOf(word)).filter((at) => at >= 0)
  const at = found.length === 0 ? 0 : Math.min(...found)
  const start = at < 60 ? 0 : text.indexOf(' ', at - 50) + 1
  const line = text.slice(start, start + 140)
  return `${start > 0 ? '… ' : ''}${line.length < 140 ? line : `${line.replace(/\s\S*$/, '')} …`}`
}

const marked = (tag, text, words) => {
  const element = document.createElement(tag)
  const parts = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  const each = parts.length === 0 ? [text] : text.split(new RegExp(`(${parts.join('|')})`, 'i'))
  element.append(
    ...each.map((part, at) =>
      at % 2 === 0 ? part : Object.assign(document.createElement('mark'), { textContent: part }),
    ),
  )
  return element
}

function show() {
  const words = field.value
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
  for (const link of results.querySelectorAll('a')) {
    const passages = window.passages?.[link.getAttribute('href').slice(root.dataset.base.replace(/\/?$/, '/').length)]
    if (passages === undefined || link.querySelector('.passage') !== null) continue
    const { anchor, heading, text, code = '' } = bestOf(passages, words)
    const isInCode = text === '' || (!words.some((word) => has(text, word)) && words.some((word) => has(code, word)))
    if (anchor !== undefined) link.href = `${link.getAttribute('href')}#${anchor}`
    const passage = Object.assign(document.createElement('span'), { className: 'passage' })
    if (heading !== undefined) passage.append(marked('strong', heading, words))
    passage.append(marked('span', lineOf(isInCode ? code : text, words), words))
    link.querySelector('.text').append(passage)
  }
}

field.addEventListener('focus', loaded)
field.addEventListener('input', loaded)
new MutationObserver(show).observe(results, { childList: true })
