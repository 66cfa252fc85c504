// Times of the address, in UTC, and those of a date field, in the viewer's zone.

/** For a field of type datetime-local; empty for what is no time. */
export function toDateTimeField(iso: string | null): string {
  const ms = iso === null ? Number.NaN : Date.parse(iso)
  if (Number.isNaN(ms)) return ''
  return new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

/** Null for a field that is empty or half filled. */
export function fromDateTimeField(text: string): string | null {
  const ms = /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(text) ? new Date(text).getTime() : Number.NaN
  return Number.isNaN(ms) ? null : new Date(ms).toISOString()
}

/** What an address says; undefined for what is no time, so that a cut address does not fail. */
export function isoTimeOrUndefined(text: string | null): string | undefined {
  return text !== null && !Number.isNaN(Date.parse(text)) ? new Date(text).toISOString() : undefined
}
