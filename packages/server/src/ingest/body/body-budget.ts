// A limit for the bytes of all bodies that are being read. Only bytes that have arrived count; a declared length costs nothing. Above
// the limit, the service abandons the body that has been arriving the longest, not the newest. So slow bodies make room for fast
// ones, and an attacker with many slow bodies cannot block the others. Bodies whose write key is not known yet are abandoned first, as
// long as they hold more than their share. They keep that share because a write key may be public: slow bodies that have one in their
// headers must not block senders that have it in the body.

export type BodyBudget = ReturnType<typeof createBodyBudget>

export interface ArrivingBody {
  /** Whether the headers of the request contain the write key of a source. */
  readonly isKnown: boolean
  /** Stops reading the body. Must remove it from the budget. */
  readonly abandon: () => void
  /** Maintained by the budget. */
  heldBytes: number
}

/** Each chunk is a Buffer, which needs memory in addition to its bytes: in Node.js 24 a chunk of one byte takes 626 bytes. */
const CHUNK_OVERHEAD_BYTES = 600

/** The share of the limit that bodies without a known key may always hold together. */
const UNKNOWN_SHARE = 1 / 4

interface Pool {
  /** In the order in which they began to arrive. */
  bodies: Set<ArrivingBody>
  heldBytes: number
}

export function createBodyBudget(maxBytes: number) {
  const unknown: Pool = { bodies: new Set(), heldBytes: 0 }
  const known: Pool = { bodies: new Set(), heldBytes: 0 }
  const poolOf = ({ isKnown }: ArrivingBody): Pool => (isKnown ? known : unknown)

  return {
    /** Counts a chunk that has arrived. May abandon bodies, including this one. */
    add(body: ArrivingBody, bytes: number): void {
      const pool = poolOf(body)
      pool.bodies.add(body)
      body.heldBytes += bytes + CHUNK_OVERHEAD_BYTES
      pool.heldBytes += bytes + CHUNK_OVERHEAD_BYTES
      while (unknown.heldBytes + known.heldBytes > maxBytes) {
        const { bodies } = unknown.heldBytes > UNKNOWN_SHARE * maxBytes || known.bodies.size === 0 ? unknown : known
        for (const oldest of bodies) {
          oldest.abandon()
          break
        }
      }
    },

    /** To be called when the body has arrived or was abandoned. */
    remove(body: ArrivingBody): void {
      const pool = poolOf(body)
      if (!pool.bodies.delete(body)) return
      pool.heldBytes -= body.heldBytes
      body.heldBytes = 0
    },
  }
}
