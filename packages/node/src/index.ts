import { Analytics } from './analytics.ts'

export type {
  GroupTraits,
  Integrations,
  JsonObject,
  MessageContext,
  MessageContext as ExtraContext,
  UserTraits,
} from '@switchyard/protocol'
export type { AnalyticsEvents, Plugin } from './analytics.ts'
export type { Callback } from './call/callback.ts'
export { Context, ContextCancelation, type LogLevel, type LogMessage, type SerializedContext } from './call/context.ts'
export { AnalyticsError, type ClientErrorCode, type ErrorCode } from './call/errors.ts'
export type { AnalyticsEvent } from './call/event.ts'
export type {
  AliasParams,
  CallOptions,
  CloseAndFlushParams,
  EventCatalog,
  EventProperties,
  Flushed,
  FlushParams,
  FlushResult,
  GroupParams,
  IdentifyParams,
  Identity,
  PageParams,
  RawMessage,
  ScreenParams,
  TrackParams,
} from './call/params.ts'
export {
  FetchHTTPClient,
  type HTTPClient,
  type HTTPClientRequest,
  type HTTPFetchFn,
  type HTTPFetchRequest,
  type HTTPHeaders,
  type HTTPResponse,
} from './http/http-client.ts'
export type { FlushEvent } from './outbox.ts'
export type { PluginType } from './plugins/plugin.ts'
export type { HttpRequestEvent, HttpResponseEvent } from './send/sender.ts'
export type { RetryEvent } from './send/verdict.ts'
export type { AnalyticsSettings, OAuthSettings } from './settings.ts'
export type { SpoolOptions } from './spool.ts'
export { Analytics }
export default Analytics
