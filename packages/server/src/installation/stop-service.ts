// Stops the service in an order in which nothing is lost, each step within its time.

import type { Unfinished } from '../delivery/delivery.ts'
import { closeServer } from '../http/close-server.ts'
import type { IngestThreads } from '../ingest/threads/ingest-threads.ts'
import type { Log } from '../logging/log.ts'
import { StopBudget } from '../timing/stop-budget.ts'
import type { BackgroundWork } from './background-work.ts'
import type { HttpServer } from './http-server.ts'
import type { ServiceCore } from './service-core.ts'

/** When the steps of a stop must have ended, from its beginning. The documentation promises ten seconds until the process has exited. */
const STOP_MS = {
  /** Connections of clients that have not sent their whole request, or not read the response, are closed. */
  clients: 2_500,
  /** Requests to destinations that were not answered are aborted. The longest default timeout of an attempt is 5 s. */
  attempts: 5_500,
  /** Outcomes are recorded, and the work that other stages have begun is finished. */
  outcomes: 7_000,
  /** Counts that are kept in memory are written, threads and processes have ended. */
  counts: 7_800,
  store: 8_800,
}
interface Running {
  core: ServiceCore
  work: BackgroundWork
  server: HttpServer
  threads: IngestThreads | null
  log: Log
}

/** Resolves with what was not finished in time, in the words of the log. */
export async function stopService(running: Running): Promise<readonly string[]> {
  const { core, work, log } = running
  const { store, delivery, holds, observer, tokens, backups } = core
  const budget = new StopBudget()
  // First of all, and before anything is awaited: no attempt starts from here on.
  const sending = delivery.stop(STOP_MS.attempts, STOP_MS.outcomes)
  clearInterval(work.retention)
  work.backlogLimit?.close()
  observer.live.close()
  core.access.singleSignOn?.close()
  const { requests, recorded } = await stopStages(running, budget, sending)
  if (requests > 0) log.warn({ requests }, 'stopping before all requests were answered: their messages are sent again after the next start')
  await Promise.all([
    budget.wait('comparing destinations with their integrations', STOP_MS.counts, holds.close()),
    budget.wait('storing renewed tokens of integrations', STOP_MS.counts, tokens.close()),
    budget.wait('ending threads of transformations', STOP_MS.counts, work.transformer.close()),
    budget.wait('ending the installation of integrations', STOP_MS.counts, work.catalogInstaller.close()),
    budget.wait('ending queries over lakes', STOP_MS.counts, work.queries.close()),
    budget.wait('ending a backup', STOP_MS.counts, backups?.close() ?? Promise.resolve()),
    budget.wait('writing counts', STOP_MS.counts, observer.close()),
  ])
  await budget.wait('closing the store', STOP_MS.store, store.close(budget.leftMs(STOP_MS.store)))
  if (budget.errors.length > 0) throw new AggregateError(budget.errors, 'a step of the stop failed')
  return recorded ? budget.unfinished : ['recording the outcomes of deliveries', ...budget.unfinished]
}

/** The steps that need nothing of each other. All of them end within the time for outcomes. */
async function stopStages({ work, server, threads }: Running, budget: StopBudget, sending: Promise<Unfinished>): Promise<Unfinished> {
  const [unfinished] = await Promise.all([
    sending,
    budget.wait('closing the connections of clients', STOP_MS.outcomes, closeConnections(server, threads)),
    budget.wait('a step of a replay job', STOP_MS.outcomes, work.replays.stop()),
    budget.wait('evaluating alerts', STOP_MS.outcomes, work.alerts.stop()),
    budget.wait('reading requests for loads', STOP_MS.outcomes, work.loads.stop()),
    budget.wait('a step of the upkeep of a warehouse', STOP_MS.outcomes, work.upkeep.stop()),
  ])
  return unfinished
}

/** The threads first: until their last request is answered, they pass requests on to the server. */
async function closeConnections({ app, connections }: HttpServer, threads: IngestThreads | null): Promise<void> {
  await threads?.close(STOP_MS.clients)
  await closeServer(app, connections, STOP_MS.clients)
}
