/** The docs page's own style and script. The build puts their text here (`.ci/bundle.mjs`), so a bundled application needs no further file. */
import { readFileSync } from 'node:fs'

export const pageStyle = readFileSync(new URL('assets/page.css', import.meta.url), 'utf8')

export const pageScript = readFileSync(new URL('assets/page.js', import.meta.url), 'utf8')
