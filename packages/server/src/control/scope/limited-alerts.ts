// Alerts for a caller that is limited to sources: incidents and mutes about its sources, and about destinations that serve no other source. What is
// about a node, the service or everything exists only for callers with all sources.

import type { AlertSettings, Mute } from '../../alerts/alert-settings.ts'
import type { Incident } from '../../alerts/incidents.ts'
import { invalidField } from '../../api/schema.ts'
import { ApiError } from '../../errors.ts'
import type { Store } from '../../store/store.ts'
import type { ControlAlerts } from '../routes/route.ts'
import { unreachable } from './out-of-reach.ts'
import type { Scope } from './scope.ts'

/** Reads all incidents to count them: there are few. */
const COUNTED = { limit: 5_000, cursor: null }

export function limitedAlerts(alerts: ControlAlerts, store: Store, scope: Scope): ControlAlerts {
  function isAboutOwn(subjectId: string | null): boolean {
    return subjectId !== null && (scope.has(subjectId) || scope.hasWhole(store.configuration(), subjectId))
  }

  const exists = ({ subject }: Incident): boolean => isAboutOwn(subject.id)
  const mutes = async (nowMs: number): Promise<Mute[]> =>
    (await alerts.settings.mutes(nowMs)).filter(({ subjectId }) => isAboutOwn(subjectId))

  const settings: Pick<AlertSettings, keyof AlertSettings> = {
    async choices() {
      const { rules, exceptions } = await alerts.settings.choices()
      const own = Object.entries(exceptions).map(
        ([rule, subjects]) => [rule, Object.fromEntries(Object.entries(subjects).filter(([id]) => isAboutOwn(id)))] as const,
      )
      return { rules, exceptions: Object.fromEntries(own) }
    },
    change: unreachable('changing the rules for alerts'),
    mutes,
    async mute(wanted) {
      if (wanted.subjectId === null)
        throw invalidField('sourceId', 'or destinationId is required, because your access is limited to some sources')
      if (!isAboutOwn(wanted.subjectId)) throw new ApiError('shared_destination')
      return alerts.settings.mute(wanted)
    },
    async unmute(id) {
      const isOwn = (await mutes(0)).some((mute) => mute.id === id)
      return isOwn ? alerts.settings.unmute(id) : undefined
    },
  }

  return {
    settings,
    mutesInForce: (nowMs) => alerts.mutesInForce(nowMs),
    incidents: (isWanted, page) => alerts.incidents((incident) => exists(incident) && isWanted(incident), page),
    async incident(id) {
      const found = await alerts.incident(id)
      return found !== undefined && exists(found) ? found : undefined
    },
    async acknowledge(id, acknowledged) {
      const found = await alerts.incident(id)
      return found !== undefined && exists(found) ? alerts.acknowledge(id, acknowledged) : undefined
    },
    openCount: async () => (await alerts.incidents((incident) => exists(incident) && incident.state === 'open', COUNTED)).data.length,
    test: unreachable('a test of alerts'),
  }
}
