// graphile-worker on PostgreSQL, with its local queue and batched completions: one addJobs call per request,
// answered when that is committed. Its jobs send with the same connection pool as the limit's.

import { Logger, makeWorkerUtils, run } from 'graphile-worker'
import pg from 'pg'
import { type Batch, createPoster, listen, readOptions } from './http-front-end.ts'

const { receiver, connectionString, settings } = readOptions()
if (receiver === undefined || connectionString === undefined)
  throw new Error('this program needs the options receiver and connectionString')
const post = createPoster(receiver)
const pgPool = new pg.Pool({ connectionString, max: 20 })
pgPool.on('error', () => {})
// `documented`: the settings of the fastest run in its documentation. `tuned`: the best we found in alternating runs of 45,000 events; 128 concurrent
// jobs and pools of 5, 8 or 40 were no better.
const SETTINGS = {
  documented: { concurrentJobs: 24, localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 },
  tuned: { concurrentJobs: 64, localQueue: { size: 2_000 }, completeJobBatchDelay: 20, failJobBatchDelay: 20 },
}
const preset = { worker: SETTINGS[settings ?? 'documented'] }
// No log: a line for each job would distort the comparison.
const logger = new Logger(() => () => {})
const utils = await makeWorkerUtils({ pgPool, logger })
await utils.migrate()
await run({ pgPool, logger, preset, noHandleSignals: true, taskList: { post } })

listen(
  (body, answer) => {
    const { batch } = JSON.parse(body.toString()) as Batch
    void utils.addJobs(batch.map((payload) => ({ identifier: 'post', payload }))).then(answer)
  },
  async () => {
    const { rows } = await pgPool.query('SELECT count(*)::int AS remaining FROM graphile_worker.jobs')
    return Number(rows[0]?.remaining)
  },
)
