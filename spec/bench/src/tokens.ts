/** The cost of verifying a provider's token, and what remembering it saves, compared with other libraries. */
import { asking, bearer } from './contestants.js'
import { row, type Row, type Section } from './Section.js'
import { added, addedRatio, microseconds, race, type Contestant, type Pace } from './paired.js'
import { ask } from './stub.js'
import { tokenApps, type Alg } from './tokenApps.js'

/** Who verifies tokens, in which framework, and how much of it ours may take; without a number, no more. */
const all: ReadonlyArray<readonly [name: string, bare: string, target: Partial<Record<Alg, number>>]> = [
  ['by hand', 'koa bare', { ES256: 1.2, RS256: 1.2, EdDSA: 1.2, PS256: 1.2, ES384: 1.2, HS256: 2 }],
  ['@fastify/jwt', 'fastify bare', { ES256: 1.1, RS256: 1.1, HS256: 1.1 }],
]

const section = async (alg: Alg, pace: Pace): Promise<Section> => {
  const { token, listeners } = await tokenApps(alg)
  const headers = bearer(token)
  const contestants: Contestant[] = [
    ...Object.entries(listeners).map(([name, listener]) => ({
      name,
      run: async () => {
        const { statusCode } = await ask(listener, '/x', headers)
        if (statusCode !== 200) throw new Error(`${name} answers ${statusCode}`)
      },
    })),
    asking('ours, verified, again', listeners['ours, verified'], headers),
  ]
  const times = await race(contestants, { ...pace, clock: 'processor' })
  const cost = (name: string, bare: string): Row => row(name, added(times, name, bare), 'us')
  const part = (mine: string, peer: string, bare: string, target = 1): Row =>
    row(`${mine} as a part of ${peer}`, addedRatio(times, [mine, 'koa bare'], [peer, bare]), 'times', { target })
  const control = addedRatio(times, ['ours, verified, again', 'koa bare'], ['ours, verified', 'koa bare'])
  const kept = addedRatio(times, ['ours, kept', 'koa bare'], ['ours, verified', 'koa bare'])
  const peers = all.filter(([name]) => name in listeners)
  const isKept = '@fastify/jwt, kept' in listeners
  return {
    title: `Tokens signed with ${alg}: added to the bare framework`,
    control,
    rows: [
      row('control: ours, verified, twice', control, 'times'),
      { ...cost('ours, kept', 'koa bare'), note: `bare Koa takes ${microseconds(times, 'koa bare').toFixed(1)} us` },
      cost('ours, verified', 'koa bare'),
      ...peers.map(([name, bare]) => cost(name, bare)),
      ...(isKept ? [cost('@fastify/jwt, kept', 'fastify bare')] : []),
      row('kept as a part of verified', kept, 'times', alg === 'HS256' ? {} : { target: 1 / 4 }),
      ...peers.map(([name, bare, target]) => part('ours, verified', name, bare, target[alg])),
      ...peers.map(([name, bare]) => part('ours, kept', name, bare)),
      ...(isKept ? [part('ours, kept', '@fastify/jwt, kept', 'fastify bare')] : []),
    ],
  }
}

/** With each algorithm; those that not all peers have are beside the check by hand alone. */
export const tokens = async (pace: Pace): Promise<ReadonlyArray<Section>> => {
  const sections: Section[] = []
  for (const alg of ['ES256', 'RS256', 'HS256', 'EdDSA', 'PS256', 'ES384'] as const)
    sections.push(await section(alg, pace))
  return sections
}
