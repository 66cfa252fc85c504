// The tests of the tracking API once more, with plain requests read without node:http. It has a process of its own, like every test file.

process.env['SWITCHYARD_TEST_PLAIN_REQUESTS'] = '1'

await import('../ingest.test.ts')
await import('../ingest-bodies.test.ts')
await import('../browser-requests.test.ts')
await import('../paths.test.ts')
await import('../gathering.test.ts')
await import('../parsing/time-warnings.test.ts')
await import('../body/body-budget.test.ts')
await import('../limits/backlog-limit.test.ts')
await import('../limits/rate-limit-charges.test.ts')
await import('../privacy/private-source.test.ts')
await import('../tracking-plans.test.ts')
