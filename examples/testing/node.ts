/**
 * The suite with node:test: `node --test dist/examples/testing/node.js`. With vitest or jest, import `test` from there;
 * with mocha it is the global `it`. Nothing else changes.
 */
import test from 'node:test'
import { right } from './right.js'
import { suite } from './suite.js'

suite(test, right)
