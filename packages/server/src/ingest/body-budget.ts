// The bytes of all bodies that are being read, and a bound for them. Only bytes that have arrived count: what a sender declares costs
// nothing. Over the bound it is not the newest body that is given up but the one that has been arriving the longest: a body
// that drips in makes room for those that come at once, so whoever drips many cannot keep the others out. Bodies whose
// key is not known yet go first.

export interface BodyBudget {
  /** Counts a piece that arrived. May give up bodies, also this one. */
  add: (body: ArrivingBody, bytes: number) => void
  /** It has arrived, or was given up. */
  remove: (body: ArrivingBody) => void
}

export interface ArrivingBody {
  /** Whether the head of the request has the key of a source. */
  readonly isKnown: boolean
  /** Must remove it from the budget. */
  readonly giveUp: () => void
  /** The budget's. */
  heldBytes: number
}

/** Beside its bytes, a piece is a Buffer with memory of its own: 626 bytes of a process for each piece of one byte, in Node.js 24. */
const PIECE_BYTES = 600

export function createBodyBudget(maxBytes: number): BodyBudget {
  // In the order in which they began to arrive.
  const strangers = new Set<ArrivingBody>()
  const known = new Set<ArrivingBody>()
  let heldBytes = 0

  return {
    add(body, bytes) {
      ;(body.isKnown ? known : strangers).add(body)
      body.heldBytes += bytes + PIECE_BYTES
      heldBytes += bytes + PIECE_BYTES
      if (heldBytes <= maxBytes) return
      for (const bodies of [strangers, known]) {
        for (const longest of bodies) {
          longest.giveUp()
          if (heldBytes <= maxBytes) return
        }
      }
    },

    remove(body) {
      if (!strangers.delete(body) && !known.delete(body)) return
      heldBytes -= body.heldBytes
      body.heldBytes = 0
    },
  }
}
