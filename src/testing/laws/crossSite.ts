/**
 * The law of other sites: if browsers send a credential by themselves, a write that another site makes a browser send
 * is refused.
 */
import { leaves, type Leaf } from '../../core/Description.js'
import { carries } from './description.js'
import { lawAbout, type Law } from './verdicts.js'
import { locationOf } from '../request/CredentialLocation.js'
import { crossSite } from '../request/fixedRequests.js'
import { mergeRequests, type RequestSpec } from '../request/RequestSpec.js'
import { letSomebodyIn } from './Verdict.js'

const isSentByBrowsers = (leaf: Leaf): boolean => {
  const place = locationOf(leaf)
  return (
    leaf.ambient || place?.in === 'cookie' || (place?.in === 'authorization' && place.name.toLowerCase() === 'basic')
  )
}

/** Refuses valid credentials that browsers send by themselves, in a write that another site made them send. */
export const refusesOtherSites: Law = lawAbout<{ readonly what: string; readonly spec: RequestSpec }>(
  'refuses writes that another site makes a browser send with a valid credential',
  ({ description, valid }) =>
    valid
      // only requests whose credentials are all sent by browsers
      .filter((spec) => {
        const sent = leaves(description).filter((leaf) => {
          const place = locationOf(leaf)
          return place === undefined || carries(spec)(place)
        })
        return sent.length > 0 && sent.every(isSentByBrowsers)
      })
      .map((spec) => ({
        what: 'a write from another site',
        spec: { ...mergeRequests(spec, crossSite), method: 'POST' },
      })),
  async (verdict, { spec }, { settingsFor }) =>
    letSomebodyIn(verdict) && (await settingsFor(spec)).csrf
      ? 'browsers send cookies and Basic credentials by themselves: say ambient: true'
      : undefined,
)
