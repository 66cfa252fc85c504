// Whether tests run at their full length. Every day they are as long as ten minutes for all of them allow: SWITCHYARD_LONG_TESTS=1.

export const IS_LONG = process.env['SWITCHYARD_LONG_TESTS'] === '1'
