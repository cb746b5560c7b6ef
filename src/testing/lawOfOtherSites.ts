/**
 * The law of other sites: a write that a page elsewhere makes a browser send is refused, where browsers send the credential.
 */
import { leaves, type Leaf } from '../core/Description.js'
import { carries } from './lawsOfDescription.js'
import { lawAbout, type Law } from './lawsOfVerdicts.js'
import { placeOf } from './Place.js'
import { crossSite } from './requests.js'
import { together, type Sketch } from './Sketch.js'
import { letSomebodyIn } from './Verdict.js'

const isSentByBrowsers = (leaf: Leaf): boolean => {
  const place = placeOf(leaf)
  return (
    leaf.ambient || place?.in === 'cookie' || (place?.in === 'authorization' && place.name.toLowerCase() === 'basic')
  )
}

/** Valid credentials that browsers send by themselves, in a write that another site made them send. */
export const refusesOtherSites: Law = lawAbout<{ readonly what: string; readonly sketch: Sketch }>(
  'refuses writes that another site makes a browser send with a valid credential',
  ({ description, valid }) =>
    valid
      // what lets it in is nothing but such credentials
      .filter((sketch) => {
        const sent = leaves(description).filter((leaf) => {
          const place = placeOf(leaf)
          return place === undefined || carries(sketch)(place)
        })
        return sent.length > 0 && sent.every(isSentByBrowsers)
      })
      .map((sketch) => ({
        what: 'a write from another site',
        sketch: { ...together(sketch, crossSite), method: 'POST' },
      })),
  async (verdict, { sketch }, { settingsFor }) =>
    letSomebodyIn(verdict) && (await settingsFor(sketch)).csrf
      ? 'browsers send cookies and Basic credentials by themselves: say ambient: true'
      : undefined,
)
