/**
 * Credentials that careless code accepts.
 */

/**
 * Strings that careless code accepts: empty values as strings, names that every object has, patterns, and one that is
 * far too long. The empty string is the first.
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
