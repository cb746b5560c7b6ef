/** koa-with-auth/upgrades: WebSocket handshakes and other upgrades, with the same authenticators as operations. */
// NODE_DEBUG prints decisions in a program that guards nothing else
import '../koa/development.js'
export { guardUpgrade, type Admitted, type GuardUpgradeOptions, type UpgradeGuard } from './guardUpgrade.js'
export { fromWebSocketProtocol, type FromWebSocketProtocolOptions } from './fromWebSocketProtocol.js'
export {
  guardRequest,
  type AdmittedRequest,
  type GuardRequestOptions,
  type Refused,
  type RefusedAnswer,
  type RequestGuard,
} from './guardRequest.js'
export { shutDown, type ShutDownOptions } from '../koa/authSignal.js'
