// Converts between times in the page's address (UTC) and inputs of type datetime-local (the viewer's time zone). Pure.

/** The value of an input of type datetime-local; empty if it is not a time. */
export function localTime(iso: string | null | undefined): string {
  const ms = Date.parse(iso ?? '')
  return Number.isNaN(ms) ? '' : new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 19)
}

/** Parses `2026-11-15T09:30` in the viewer's time zone, or a time with a zone; undefined if it is not a time, so that a truncated address does not fail. */
export function isoTime(text: string | null | undefined): string | undefined {
  const ms = /^\d{4}-\d\d-\d\d/.test(text ?? '') ? Date.parse(text as string) : Number.NaN
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString()
}
