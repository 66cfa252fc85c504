// Checks whether an integration can run: whether the catalogue has it, its settings are complete, a subscription is enabled, and a host process
// loads its code. Nothing is sent: the code runs as for a preview, in which no connection can be opened. Its addresses are known only to its code,
// so they cannot be checked as those of a webhook are.

import type { Previewed } from '../../delivery/delivery.ts'
import { kindOf } from '../../destinations/kinds.ts'
import type { Destination, SegmentContent } from '../../store/store.ts'
import { INSTALL_HINT, installedDefinition } from '../destinations/integration-definition.ts'
import { sampleContent } from '../destinations/sample-message.ts'
import type { OpenCatalog } from '../routes/route.ts'
import { HELD_ADVICE } from './diagnose-destinations.ts'
import type { Finding } from './finding.ts'

type Preview = (destination: Destination, messages: readonly SegmentContent[]) => Promise<Previewed[]>

export interface IntegrationChecks {
  catalog: OpenCatalog | undefined
  preview: Preview
  deadlineMs: number
  nowMs: () => number
}

/** Integrations are loaded one after the other, because loading one takes seconds of CPU time, and until the deadline. */
export function createIntegrationChecks({ catalog, preview, deadlineMs, nowMs }: IntegrationChecks): (of: Destination) => Promise<Finding> {
  const endAtMs = performance.now() + deadlineMs
  let last: Promise<unknown> = Promise.resolve()

  async function run(destination: Destination): Promise<Finding> {
    const name = nameOf(destination)
    const again = 'Run the diagnostics again.'
    if (performance.now() > endAtMs)
      return { state: 'unknown', message: `${name}: its code was not loaded, because other checks took too long.`, advice: again }
    try {
      const [previewed] = await preview(destination, [sampleContent(nowMs())])
      if (previewed?.kind === 'failed' && previewed.reason === 'not_run')
        return {
          state: 'bad',
          message: `${name} cannot run: ${previewed.error}`,
          advice: 'Check the log of the service for errors of integration hosts.',
        }
    } catch (error) {
      if ((error as Error).name !== 'TooManyPreviews') throw error
      return { state: 'unknown', message: `${name}: its code was not loaded, because too many previews are running.`, advice: again }
    }
    return { state: 'good', message: `${name} can run: its settings are complete, and its code was loaded.`, advice: null }
  }

  return async (destination) => {
    const problem = await configurationProblem(destination, catalog)
    if (problem !== null) return problem
    const result = last.then(() => run(destination))
    last = result.catch(() => {})
    return result
  }
}

function nameOf(destination: Destination): string {
  return `${destination.name} (${kindOf(destination).slug(destination)})`
}

async function configurationProblem(destination: Destination, open: OpenCatalog | undefined): Promise<Finding | null> {
  const { id } = destination
  const kind = kindOf(destination)
  const name = nameOf(destination)
  if (((await open?.()) ?? null) === null)
    return {
      state: 'bad',
      message: `${name} cannot run, because the integrations package is not installed on this server.`,
      advice: `On the machine of the service, ${INSTALL_HINT}. With several nodes, do this on each of them.`,
    }
  const definition = await installedDefinition(open, destination)
  if (definition === null)
    return {
      state: 'bad',
      message: `${name} cannot run, because the installed catalogue no longer has this integration.`,
      advice: 'Create the destination again with another integration, or install the version of the catalogue that has it.',
    }
  if (!definition.available)
    return { state: 'bad', message: `${name} is not available. ${definition.problem}`, advice: 'Delete or disable the destination.' }
  const misfit = kind.misfit(destination, definition)
  if (misfit !== null)
    return {
      state: 'bad',
      message: `${name} does not fit the installed version of the integration, so its deliveries are held: ${misfit.field} ${misfit.problem}.`,
      advice: HELD_ADVICE,
    }
  const missing = kind.setupProblem(destination, definition)
  if (missing !== null)
    return {
      state: 'bad',
      message: `${name}: ${missing.field} ${missing.problem}.`,
      advice: `Correct the settings of the destination, for example with \`switchyard destinations update ${id} --set NAME=VALUE\`.`,
    }
  if (kind.isInactive(destination))
    return {
      state: 'warning',
      message: `${name} has no enabled subscription, so no message is sent to it.`,
      advice: 'Enable or add a subscription on the page of the destination.',
    }
  return null
}
