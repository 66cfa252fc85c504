// Recognises secrets that Segment has masked: its API returns dots instead of a secret, with the beginning or the end of it.

import { isObject } from '@switchyard/protocol'

/** A text of another kind that looks like a mask is asked for, like a secret: better than storing dots as an API key. */
const MASK = /•{2,}|^•|•$|\*{3,}/

/** Whether a value is masked, or something in it is. */
export function isMasked(value: unknown): boolean {
  if (typeof value === 'string') return MASK.test(value)
  if (Array.isArray(value)) return value.some(isMasked)
  return isObject(value) && Object.values(value).some(isMasked)
}
