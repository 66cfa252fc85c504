// Whether tests run at their full length (SWITCHYARD_LONG_TESTS=1). By default they are shortened, so that all checks fit into 25 minutes.

export const IS_LONG = process.env['SWITCHYARD_LONG_TESTS'] === '1'

/** The service promises to stop within ten seconds. Beside other tests it may get too little CPU time for that; the long tests run alone. */
export const STOPPED_WITHIN_MS = IS_LONG ? 10_000 : 20_000
