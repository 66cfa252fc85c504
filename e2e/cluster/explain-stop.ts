// Whether a node that was told to stop could finish its work, from what it logged.

/** What a node logs if it did not wait any longer: for responses, which changes nothing else, or for what its forced stop lists as unfinished. */
const UNANSWERED = /^stopping before all requests were answered:/
const FORCED = /^the stop was forced /
const FORCED_CODE = 6

/** The exit code that belongs to the log of a node that was told to stop, and whether the log explains copies. */
export function explainStop(stderr: string): { expectedCode: number; repeats: boolean } {
  const messages = stderr.split('\n').flatMap((line) => (line.startsWith('{') ? [(JSON.parse(line) as { msg: string }).msg] : []))
  const isForced = messages.some((msg) => FORCED.test(msg))
  return { expectedCode: isForced ? FORCED_CODE : 0, repeats: isForced || messages.some((msg) => UNANSWERED.test(msg)) }
}
