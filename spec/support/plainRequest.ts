/** A Koa request that came over no socket, as the testing kit makes it. */
export { plainRequest, type Sketch } from 'koa-with-auth/testing'
