// Whether tests run at their full length (SWITCHYARD_LONG_TESTS=1). By default they are shortened, so that all checks fit into 25 minutes.
// And whether the machine has time for them.

import { monitorEventLoopDelay } from 'node:perf_hooks'

export const IS_LONG = process.env['SWITCHYARD_LONG_TESTS'] === '1'

/** The service promises to stop within ten seconds. Beside other tests it may get too little CPU time for that; the long tests run alone. */
export const STOPPED_WITHIN_MS = IS_LONG ? 10_000 : 20_000

/** Of the ten seconds of a lease. If this process got no CPU time for so long, nodes may have got none for a whole lease. */
const QUIET_MS = 3_000

/** Watches whether this process gets CPU time when it needs some. What only a machine that is not overloaded can promise is checked only then. */
export function watchDelays(): Disposable & { isSo(): boolean } {
  const delays = monitorEventLoopDelay()
  delays.enable()
  return {
    isSo: () => IS_LONG || delays.max < QUIET_MS * 1_000_000,
    [Symbol.dispose]: () => void delays.disable(),
  }
}
