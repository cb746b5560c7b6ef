import type { RequestListener } from 'node:http'
import { expectAlike } from './alike.js'
import { asking, bearer } from './contestants.js'
import { koaApps, signedToken } from './koaApps.js'
import { added, addedRatio, microseconds, race, ratio, type Pace } from './paired.js'
import { row, type Section } from './Section.js'

const good = bearer('supersecret')

/** Compared with other ways to authenticate on Koa. */
export const others = async (pace: Pace): Promise<Section> => {
  const jwt = bearer(signedToken)
  const hand = koaApps['by hand']()
  const alike: Readonly<Record<string, RequestListener>> = {
    'by hand': hand,
    'by hand, in middleware': koaApps['by hand, in middleware'](),
    ours: koaApps.ours(),
  }
  await expectAlike({ name: 'bearer', url: '/x', headers: good, status: 200 }, alike)
  const times = await race(
    [
      ...Object.entries(alike).map(([name, listener]) => asking(name, listener, good)),
      asking('by hand, again', hand, good),
      asking('bare', koaApps.bare(), good),
      asking('passport', koaApps.passport(), good),
    ],
    pace,
  )
  const [verifying, koaJwt] = [koaApps['ours, JWT'](), koaApps['koa-jwt']()]
  const verified = await race(
    [asking('ours', verifying, jwt), asking('koa-jwt', koaJwt, jwt), asking('koa-jwt, again', koaJwt, jwt)],
    // One verification takes as long as a hundred comparisons
    { ...pace, batch: 5 },
  )
  const control = ratio(times, 'by hand, again', 'by hand')
  return {
    title: 'Beside other ways to authenticate on Koa',
    control,
    rows: [
      row('control: by hand twice', control, 'times', {
        note: `${microseconds(times, 'by hand').toFixed(1)} us a request`,
      }),
      row(
        'by hand in middleware, beside by hand in the handler',
        ratio(times, 'by hand, in middleware', 'by hand'),
        'times',
      ),
      row('added to bare Koa: by hand', added(times, 'by hand', 'bare'), 'us'),
      row('added to bare Koa: ours', added(times, 'ours', 'bare'), 'us'),
      row('added to bare Koa: koa-passport', added(times, 'passport', 'bare'), 'us'),
      row('ours as a part of koa-passport', addedRatio(times, ['ours', 'bare'], ['passport', 'bare']), 'times', {
        target: 1 / 10,
      }),
      row('JWT, beside koa-jwt, the same verifier', ratio(verified, 'ours', 'koa-jwt'), 'times', {
        control: ratio(verified, 'koa-jwt, again', 'koa-jwt'),
      }),
    ],
  }
}
