// Whether tests run at their full length (SWITCHYARD_LONG_TESTS=1). By default they are shortened, so that all checks fit into 25 minutes.

export const IS_LONG = process.env['SWITCHYARD_LONG_TESTS'] === '1'
