// What `integrations` says about all destinations. Names of destinations are case-sensitive; only this key is not.

/**
 * The value of `All`, in any capitalization: analytics-go writes `all`. Where several are given the first counts, as it does for
 * Segment's own `@segment/facade`. Undefined if there is none.
 */
export function allIntegrations(integrations: object): unknown {
  for (const [key, value] of Object.entries(integrations)) if (key.length === 3 && key.toLowerCase() === 'all') return value
  return undefined
}
