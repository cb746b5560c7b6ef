'use strict'
module.exports = {
  testMatch: ['**/tests/*.test.ts'],
  transform: { '\\.ts$': ['ts-jest', { tsconfig: 'tsconfig.json' }] },
}
