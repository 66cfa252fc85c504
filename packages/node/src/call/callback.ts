import type { Context } from './context.ts'
import type { AnalyticsError } from './errors.ts'

/** Called once, when the service has stored the message or it has failed; `err` is undefined if it was stored. If it returns a promise, `flush()` waits for it. */
export type Callback = (err?: AnalyticsError, ctx?: Context) => unknown
