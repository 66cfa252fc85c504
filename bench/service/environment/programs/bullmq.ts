// BullMQ on a Redis that writes every command to disk before it answers: one addBulk call per request, answered when
// that is done. Its jobs send with the same connection pool as the limit's.

import { Queue, Worker } from 'bullmq'
import { type Batch, createPoster, listen, readOptions } from './http-front-end.ts'

const { receiver, redisPort } = readOptions()
if (receiver === undefined || redisPort === undefined) throw new Error('this program needs the options receiver and redisPort')
const post = createPoster(receiver)
const connection = { host: '127.0.0.1', port: redisPort }
const queue = new Queue('post', { connection, defaultJobOptions: { removeOnComplete: true } })
const worker = new Worker('post', (job) => post(job.data), { connection: { ...connection, maxRetriesPerRequest: null }, concurrency: 64 })
await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()])

listen(
  (body, answer) => {
    const { batch } = JSON.parse(body.toString()) as Batch
    void queue.addBulk(batch.map((data) => ({ name: 'post', data }))).then(answer)
  },
  async () => {
    const counts = await queue.getJobCounts('waiting', 'active', 'prioritized', 'delayed')
    return Object.values(counts).reduce((sum, count) => sum + count, 0)
  },
)
