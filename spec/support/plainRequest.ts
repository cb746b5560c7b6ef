/** A Koa request that came over no socket, as the testing kit makes it. */
export { mockRequest as plainRequest, type RequestSpec as Sketch } from 'koa-with-auth/testing'
