// A limit for the bytes of all bodies that are being read. Only bytes that have arrived count; a declared length costs nothing. Above
// the limit, the service gives up the body that has been arriving the longest, not the newest. So slow bodies make room for fast
// ones, and an attacker with many slow bodies cannot keep the others out. Bodies whose key is not known yet are given up first, as long
// as they hold more than their share: a write key may be public, so slow bodies with one must not keep out senders with their key in
// the body.

export interface BodyBudget {
  /** Counts a chunk that has arrived. May give up bodies, including this one. */
  add: (body: ArrivingBody, bytes: number) => void
  /** It has arrived, or was given up. */
  remove: (body: ArrivingBody) => void
}

export interface ArrivingBody {
  /** Whether the head of the request has the key of a source. */
  readonly isKnown: boolean
  /** Must remove it from the budget. */
  readonly giveUp: () => void
  /** Maintained by the budget. */
  heldBytes: number
}

/** A chunk is a Buffer, which takes memory besides its bytes: in Node.js 24 a chunk of one byte takes 626 bytes. */
const PIECE_BYTES = 600

/** The share of the limit that bodies without a known key may always hold together. */
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
