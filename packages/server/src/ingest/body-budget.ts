// The bytes of all bodies that are being read, and a bound for them. Only bytes that have arrived count: what a sender declares costs
// nothing. Over the bound it is not the newest body that is given up but the one that has been arriving the longest: a body
// that drips in makes room for those that come at once, so whoever drips many cannot keep the others out. Bodies whose
// key is not known yet go first, as long as they hold more than their share: a write key may be public, and whoever drips bodies
// with one must not keep out the senders that have their key in the body.

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

/** Of the bound, which bodies without a known key may always hold together. */
const STRANGERS_SHARE = 1 / 4

interface Pool {
  /** In the order in which they began to arrive. */
  bodies: Set<ArrivingBody>
  heldBytes: number
}

export function createBodyBudget(maxBytes: number): BodyBudget {
  const strangers: Pool = { bodies: new Set(), heldBytes: 0 }
  const known: Pool = { bodies: new Set(), heldBytes: 0 }
  const poolOf = ({ isKnown }: ArrivingBody): Pool => (isKnown ? known : strangers)

  return {
    add(body, bytes) {
      const pool = poolOf(body)
      pool.bodies.add(body)
      body.heldBytes += bytes + PIECE_BYTES
      pool.heldBytes += bytes + PIECE_BYTES
      while (strangers.heldBytes + known.heldBytes > maxBytes) {
        const { bodies } = strangers.heldBytes > STRANGERS_SHARE * maxBytes || known.bodies.size === 0 ? strangers : known
        for (const longest of bodies) {
          longest.giveUp()
          break
        }
      }
    },

    remove(body) {
      const pool = poolOf(body)
      if (!pool.bodies.delete(body)) return
      pool.heldBytes -= body.heldBytes
      body.heldBytes = 0
    },
  }
}
