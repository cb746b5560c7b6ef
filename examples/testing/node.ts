/**
 * The suite under node:test: `node --test dist/examples/testing/node.js`. Under vitest and jest `test` is imported from
 * there, under mocha it is the global `it`; nothing else changes.
 */
import test from 'node:test'
import { right } from './right.js'
import { suite } from './suite.js'

suite(test, right)
