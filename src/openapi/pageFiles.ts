/**
 * The docs page's own style and script. The build puts their text into this module (`.ci/modules.mjs`), so a bundled
 * application needs no further file.
 */
import { readFileSync } from 'node:fs'
import { here } from './here.js'

const textOf = (name: string): string => readFileSync(new URL(name, here), 'utf8')

export const pageStyle: string = textOf('assets/page.css')

export const pageScript: string = textOf('assets/page.js')
