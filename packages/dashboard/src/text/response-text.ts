// How the response of a receiver began, in a sentence. Pure.

/** As much of a response as fits into a list. */
const MAX_CHARACTERS = 120

/** Empty without a response. */
export function responseText(responseStart: string | null): string {
  const text = (responseStart ?? '').replaceAll(/\s+/g, ' ').trim()
  const start = text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS)}…` : text
  return text === '' ? '' : `The response began with “${start}”.`
}
