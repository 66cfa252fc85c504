// A number with its noun in the right form, for sentences of the command line and of the API.

/** `1 message`, `2 messages`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`
}
