// Converts between times in the page's address (UTC) and datetime-local fields (the viewer's time zone).

/** The value of a datetime-local field; empty if `iso` is not a time. */
export function toDateTimeField(iso: string | null): string {
  const ms = iso === null ? Number.NaN : Date.parse(iso)
  if (Number.isNaN(ms)) return ''
  return new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

/** Null if the field is empty or incomplete. */
export function fromDateTimeField(text: string): string | null {
  const ms = /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(text) ? new Date(text).getTime() : Number.NaN
  return Number.isNaN(ms) ? null : new Date(ms).toISOString()
}

/** A time from the page's address; undefined if it is not a time, so that a truncated address does not fail. */
export function isoTimeOrUndefined(text: string | null): string | undefined {
  return text !== null && !Number.isNaN(Date.parse(text)) ? new Date(text).toISOString() : undefined
}
