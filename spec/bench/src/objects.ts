/** What `owned` costs: the same look-up in the handler, and as a condition. An operation without one runs the same code as before. */
import Router from '@koa/router'
import { httpBearer, owned, withAuth } from '../../../dist/index.js'
import { asking, bearer } from './contestants.js'
import { listenerOf } from './koaApps.js'
import { added, race, ratio, type Pace } from './paired.js'
import { row, type Section } from './Section.js'

interface User {
  readonly name: string
}

const anna: User = { name: 'anna' }
const user = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && anna })
const notes = new Map([['n1', { owner: 'anna', text: 'milk' }]])
const find = (id: string) => notes.get(id)
const isOf = ({ owner }: { readonly owner: string }, { name }: User): boolean => owner === name

const byHand = () =>
  listenerOf(
    new Router().get('/notes/:id', withAuth(user), (ctx) => {
      const note = find(String(ctx.params['id']))
      if (note === undefined || !isOf(note, ctx.request.auth)) ctx.status = 404
      else ctx.body = note.text
    }),
  )
const ours = (look: (id: string, user: User) => ReturnType<typeof find> | Promise<ReturnType<typeof find>>) =>
  listenerOf(
    new Router().get('/notes/:id', withAuth(user, owned('note', { param: 'id', find: look, allow: isOf })), (ctx) => {
      ctx.body = ctx.request.objects.note.text
    }),
  )

const headers = bearer('supersecret')

export const objects = async (pace: Pace): Promise<Section> => {
  const all = { 'by hand': byHand(), again: byHand(), sync: ours(find), async: ours(async (id) => find(id)) }
  const times = await race(
    Object.entries(all).map(([name, listener]) => asking(name, listener, headers, '/notes/n1')),
    pace,
  )
  return {
    title: 'An object of the path: owned beside the same look-up in the handler',
    rows: [
      row('control: by hand twice', ratio(times, 'again', 'by hand'), 'times'),
      row('owned adds', added(times, 'sync', 'by hand'), 'us', { target: 1 }),
      row('owned adds, with an asynchronous find', added(times, 'async', 'by hand'), 'us'),
    ],
  }
}
