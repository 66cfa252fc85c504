// The tests of the tracking API once more, with an ingest thread that reads the requests.

process.env['SWITCHYARD_TEST_INGEST_THREADS'] = '1'

await import('../fixtures/tracking-api-tests.ts')
