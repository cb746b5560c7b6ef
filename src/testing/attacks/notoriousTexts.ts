/**
 * Credentials that careless code takes for somebody.
 */

/**
 * Strings that careless code takes for somebody: what nothing becomes as a string, names that every object has, patterns, and
 * what is far too long. The empty text is the first.
 */
export const notoriousTexts: ReadonlyArray<string> = [
  '',
  ' ',
  'undefined',
  'null',
  'true',
  'false',
  '0',
  '-1',
  'NaN',
  '[object Object]',
  '{}',
  '[]',
  '""',
  '__proto__',
  'constructor',
  'toString',
  'admin',
  'root',
  '*',
  '%',
  '.*',
  "' OR '1'='1",
  '../../etc/passwd',
  '${jndi:x}',
  '\u00e9\u00ff',
  'A'.repeat(9000),
]
