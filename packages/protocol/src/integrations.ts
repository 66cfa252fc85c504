// Reads the key `All` of `integrations`. Names of destinations are case-sensitive; only this key is not.

/**
 * Returns the value of `All`, in any capitalization (analytics-go writes `all`), or undefined if there is none. If there are
 * several, the first one counts, as in Segment's own `@segment/facade`.
 */
export function allIntegrations(integrations: object): unknown {
  for (const [key, value] of Object.entries(integrations)) if (key.length === 3 && key.toLowerCase() === 'all') return value
  return undefined
}
