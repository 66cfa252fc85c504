// Whether tests run at their full length. Every day they are as long as a quarter of an hour for all checks allows: SWITCHYARD_LONG_TESTS=1.

export const IS_LONG = process.env['SWITCHYARD_LONG_TESTS'] === '1'
