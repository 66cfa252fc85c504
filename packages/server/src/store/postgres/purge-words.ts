// What nodes tell each other of purges, so that what one has taken from the store to send is not sent after another has purged
// it. A word is the payload of a notification, which the server bounds: many segments fit in one, and a large one takes several.

export const PURGED_CHANNEL = 'switchyard_purged'

export interface PurgedMessages {
  segment: string
  indexes: readonly number[]
}

/** The server refuses 8,000 bytes. */
const MOST_BYTES = 7_900
/** At five characters each, they leave room for the segment's name. */
const INDEXES_PER_ENTRY = 1_000

export function writePurged(purged: readonly PurgedMessages[]): string[] {
  const words: string[] = []
  let word = ''
  const add = (entry: string): void => {
    if (word.length > 0 && word.length + 1 + entry.length > MOST_BYTES) {
      words.push(word)
      word = ''
    }
    word += word === '' ? entry : `;${entry}`
  }
  for (const { segment, indexes } of purged) {
    for (let at = 0; at < indexes.length; at += INDEXES_PER_ENTRY) add(`${segment}:${indexes.slice(at, at + INDEXES_PER_ENTRY).join()}`)
  }
  if (word !== '') words.push(word)
  return words
}

/** Whatever else was sent on the channel means nothing. */
export function readPurged(word: string): PurgedMessages[] {
  if (!/^\d{19}:\d{1,4}(,\d{1,4})*(;\d{19}:\d{1,4}(,\d{1,4})*)*$/.test(word)) return []
  return word.split(';').map((entry) => {
    const [segment = '', indexes = ''] = entry.split(':')
    return { segment, indexes: indexes.split(',').map(Number) }
  })
}
