// In the browser: the search. Whole words count before parts of words, the words of "Find it by word" are synonyms, and each page that was
// found shows the heading and a line of its best passage, and leads there. The field, the list and its keys are those of typedoc. The
// texts (assets/passages.js) are loaded at the first search.
const root = document.documentElement
const base = root.dataset.base.replace(/\/?$/, '/')
const results = document.getElementById('tsd-search-results')
const field = document.getElementById('tsd-search-input')
const MOST = 10

const loaded = () => {
  if (window.passages !== undefined || document.getElementById('passages') !== null) return
  const script = Object.assign(document.createElement('script'), { id: 'passages', onload: show })
  script.src = `${base}assets/passages.js`
  document.head.append(script)
}

// "Roles" is "role", and `constantTimeEqual` is also its three words
const folded = (word) => (word.length > 3 ? word.replace(/(?<!s)s$/, '') : word)
const wordsOf = (text) => {
  const found = text.match(/[\p{L}\p{N}@]+/gu) ?? []
  const parts = found.flatMap((one) => [one, ...one.split(/(?<=[a-z\d])(?=[A-Z])/)])
  return new Set(parts.map((one) => folded(one.toLowerCase())))
}

// 1 for a whole word, a half for its beginning, and little for a part, which counts only where no page has the word
const has = (text, word) => {
  const all = wordsOf(text)
  if (all.has(word)) return 1
  if (word.length > 2 && [...all].some((one) => one.startsWith(word))) return 0.5
  return word.length > 2 && text.toLowerCase().includes(word) ? 0.01 : 0
}

// A word counts most in a heading, least in code
const scoreOf = ({ heading = '', text, code = '' }, word) =>
  Math.max(6 * has(heading, word), 2 * has(text, word), has(code, word))

// How well a phrase of "Find it by word" says what was typed
const likeness = (phrase, words) => {
  // one word of two parts, such as MySQL, is one
  const own = wordsOf(phrase.toLowerCase())
  const common = words.filter((word) => own.has(word)).length
  return common === 0 ? 0 : (common / words.length) * (common / own.size)
}

const namedBy = ({ synonyms }, words) => {
  const named = new Map()
  for (const { words: phrases, text, to } of synonyms) {
    const [phrase, best] = phrases
      .map((one) => [one, likeness(one, words)])
      .reduce((most, one) => (one[1] > most[1] ? one : most), ['', 0])
    to.forEach(({ page, anchor }, at) => {
      // the first link of a row is the answer
      const score = best * (at === 0 ? 30 : 20)
      if (best < 0.5 || score <= (named.get(page)?.score ?? 0)) return
      named.set(page, { score, anchor, passage: page === 'words' ? { heading: phrase, text } : undefined })
    })
  }
  return named
}

const same = (one, other) => one.replace(/[^\p{L}\p{N}]/gu, '') === other.replace(/[^\p{L}\p{N}]/gu, '')

const foundIn = (page, words, named) => {
  const { name, guide, passages } = page
  const titles = words.map((word) => (guide ? 8 : 4) * has(name, word))
  const scored = passages.map((passage) => {
    const each = words.map((word, at) => Math.max(scoreOf(passage, word), titles[at] / 4))
    // all of the words in one passage
    return {
      passage,
      score: each.reduce((sum, one) => sum + one, 0) * (each.filter((one) => one > 0).length / words.length),
    }
  })
  let best = scored.reduce((most, one) => (one.score > most.score ? one : most), { score: 0, passage: passages[0] })
  const synonym = guide && named.get(guide)
  if (synonym?.passage !== undefined) best = { ...best, passage: synonym.passage }
  else if (synonym?.anchor !== undefined) {
    const passage = passages.find(({ anchor = '' }) => same(anchor, synonym.anchor))
    if (passage !== undefined) best = { ...best, passage }
  }
  const title = titles.reduce((sum, one) => sum + one, 0) / words.length
  const exact = name === field.value.trim() ? 40 : 0
  // that table has every word, so only its own answers count
  const own = guide === 'words' ? 0 : best.score + title
  return {
    page,
    passage: best.passage ?? { text: '' },
    score: own + (synonym?.score ?? 0) + exact + (guide && own > 0.5 ? 1 : 0),
  }
}

// The line that has a word, with a part of the lines around it
const lineOf = (text, words) => {
  const found = words.map((word) => text.toLowerCase().search(new RegExp(`(?<![\\p{L}\\p{N}])${literal(word)}`, 'iu')))
  const places = found.filter((at) => at >= 0)
  const at = places.length === 0 ? 0 : Math.min(...places)
  const start = at < 60 ? 0 : text.indexOf(' ', at - 50) + 1
  const line = text.slice(start, start + 140)
  return `${start > 0 ? '… ' : ''}${line.length < 140 ? line : `${line.replace(/\s\S*$/, '')} …`}`
}

const literal = (word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

const marked = (tag, text, words) => {
  const element = document.createElement(tag)
  const each = words.length === 0 ? [text] : text.split(new RegExp(`(${words.map(literal).join('|')})`, 'i'))
  element.append(
    ...each.map((part, at) =>
      at % 2 === 0 ? part : Object.assign(document.createElement('mark'), { textContent: part }),
    ),
  )
  return element
}

let searches = 0

const itemOf = ({ page, passage }, words, at) => {
  const { anchor, heading, text, code = '' } = passage
  const item = Object.assign(document.createElement('li'), {
    id: `search:${searches}-${at}`,
    role: 'option',
    ariaSelected: 'false',
  })
  const link = Object.assign(document.createElement('a'), { tabIndex: -1 })
  link.href = `${base}${page.url}${anchor === undefined || page.url.includes('#') ? '' : `#${anchor}`}`
  link.innerHTML = `<svg width="20" height="20" class="tsd-kind-icon" aria-hidden="true"><use href="#icon-${page.kind}"></use></svg>`
  const label = Object.assign(document.createElement('span'), { className: 'text' })
  const isInCode = text === '' || (!words.some((word) => has(text, word)) && words.some((word) => has(code, word)))
  const shown = Object.assign(document.createElement('span'), { className: 'passage' })
  if (heading !== undefined) shown.append(marked('strong', heading, words))
  shown.append(marked('span', lineOf(isInCode ? code : text, words), words))
  label.append(marked('span', page.name, words), shown)
  link.append(label)
  item.append(link)
  return item
}

function show() {
  results.replaceChildren()
  const words = [...wordsOf(field.value.toLowerCase())]
  const status = document.getElementById('tsd-search-status')
  if (status !== null) status.textContent = ''
  if (words.length === 0 || window.passages === undefined) return
  const named = namedBy(window.passages, words)
  const all = window.passages.pages
    .map((page) => foundIn(page, words, named))
    .sort((one, other) => other.score - one.score)
  const best = all[0]?.score ?? 0
  // parts of words only if nothing else is found
  const found = all.filter(({ score }) => score > 0 && (best < 0.5 || score >= 0.5)).slice(0, MOST)
  searches += 1
  results.append(...found.map((one, at) => itemOf(one, words, at)))
  if (found.length === 0 && status !== null)
    status.textContent = `Nothing has "${field.value}". "Find it by word" has other names.`
}

// instead of the search of typedoc
document.addEventListener(
  'input',
  (event) => {
    if (event.target !== field) return
    event.stopImmediatePropagation()
    loaded()
    show()
  },
  true,
)
field.addEventListener('focus', loaded)
