import type { AnalyticsError } from '../errors.ts'
import type { Context } from './context.ts'

/** Called once, when the message is delivered or has failed; `err` is undefined if it was delivered. If it returns a promise, `flush()` waits for it. */
export type Callback = (err?: AnalyticsError, ctx?: Context) => unknown
