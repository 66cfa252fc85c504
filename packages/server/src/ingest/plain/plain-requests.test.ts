// The tests of the tracking API once more, with plain requests read without node:http.

process.env['SWITCHYARD_TEST_PLAIN_REQUESTS'] = '1'

await import('../fixtures/tracking-api-tests.ts')
