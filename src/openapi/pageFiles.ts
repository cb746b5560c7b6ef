/** The docs page's own style and script. The build puts their text here (`.ci/bundle.mjs`), so a bundled application needs no further file. */
import { readFileSync } from 'node:fs'

const textOf = (name: string): string => readFileSync(new URL(name, import.meta.url), 'utf8')

export const pageStyle: string = textOf('assets/page.css')

export const pageScript: string = textOf('assets/page.js')
