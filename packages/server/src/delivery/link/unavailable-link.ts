// Stands for a process whose package is not installed.

import type { Link, LinkEvents } from './link.ts'
import type { Outcome } from './outcome.ts'

/** Fails all work until the package is installed. Replaced at the next check, which looks for the package again. */
export function unavailableLink(events: LinkEvents, outcome: Outcome): Link {
  const ignore = (): void => undefined
  return {
    commands: {
      define: ignore,
      forget: ignore,
      recall: ignore,
      resume: ignore,
      limit: ignore,
      load: ignore,
      drop: ignore,
      start: ({ unit, urls }) => {
        queueMicrotask(() => {
          for (const url of urls) events.outcome(unit, url, outcome, 0)
        })
      },
    },
    drain: () => Promise.resolve(),
    health: { isHeard: true, isSpent: true, ping: ignore, kill: (error) => events.lost(error) },
  }
}
