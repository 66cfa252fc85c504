// Assembles the service: opens the store and the stages (service-core.ts), registers their routes, listens, and shuts down in an order in which
// nothing is lost. Only open-store.ts knows which store adapter is used. The logic of the stages does not belong here.

import type { Config } from './config.ts'
import { createBackgroundWork } from './installation/background-work.ts'
import { createHttpServer } from './installation/http-server.ts'
import { checkPort, listenProblem, urlOf } from './installation/listening.ts'
import { StartProblem } from './installation/open-store.ts'
import { registerStages } from './installation/register-stages.ts'
import { type AppParts, openServiceCore } from './installation/service-core.ts'
import { type Listening, startListening } from './installation/start-listening.ts'
import { stopService } from './installation/stop-service.ts'
import type { Log } from './logging/log.ts'
import type { Source, Store } from './store/store.ts'

export { StartProblem, StoreProblem } from './installation/open-store.ts'
export type { AppParts } from './installation/service-core.ts'

export interface App {
  url: string
  /** The source to show at startup; undefined if every source was deleted. */
  firstSource: Source | undefined
  /** The admin token if it was generated at this start. It is shown once. */
  generatedToken: string | null
  /** Whether a build of the dashboard was found at startup. */
  hasDashboard: boolean
  store: Store
  /** The address of the store, without credentials. */
  storePlace: string
  /**
   * Sends nothing more, stops accepting requests, finishes or releases deliveries in flight, and closes. Takes at most STOP_MS. Resolves with
   * what was not finished by then, in the words of the log.
   */
  close(): Promise<readonly string[]>
}

const BODY_TIMEOUT_MS = 10_000

export async function createApp(config: Config, log: Log, parts: AppParts = {}): Promise<App> {
  const { bodyTimeoutMs = BODY_TIMEOUT_MS, onRoute } = parts
  // The supervisor has checked it for its processes, which share the port.
  if (parts.supervised === undefined) await checkPort(config)
  let url = ''
  const core = await openServiceCore(config, log, parts)
  const server = createHttpServer(log, { bodyTimeoutMs, onRoute })
  const work = createBackgroundWork(core, config, log, () => url)
  const { hasDashboard, deciding } = await registerStages(server, { core, work, config, parts, bodyTimeoutMs })
  let listening: Listening | null = null
  const stop = (): Promise<readonly string[]> => stopService({ core, work, server, threads: listening?.threads ?? null, log })
  try {
    listening = await startListening(server, { config, log, store: core.store, deciding, bodyTimeoutMs })
  } catch (error) {
    await stop()
    const problem = listenProblem(error as NodeJS.ErrnoException, config)
    // Another program took the port since it was checked. This is the only time that the token can be shown.
    const { generated } = core.admin
    throw generated === null ? problem : new StartProblem(`${problem.message} Save the admin token, which was just created: ${generated}`)
  }
  url = urlOf(listening.address)
  work.start()
  let closing: Promise<readonly string[]> | undefined
  return {
    url,
    firstSource: core.first,
    generatedToken: core.admin.generated,
    hasDashboard,
    store: core.store,
    storePlace: core.place,
    close: () => (closing ??= stop()),
  }
}
