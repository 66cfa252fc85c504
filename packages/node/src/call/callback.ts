import type { AnalyticsError } from '../errors.ts'
import type { Context } from './context.ts'

/** Called once, when the message's outcome is known. A promise it returns is waited for by `flush()`. */
export type Callback = (err?: AnalyticsError, ctx?: Context) => unknown
