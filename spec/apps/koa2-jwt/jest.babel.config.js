'use strict'
module.exports = {
  testMatch: ['**/tests/*.test.js'],
  transform: { '\\.js$': ['babel-jest', { presets: [['@babel/preset-env', { targets: { node: 'current' } }]] }] },
}
