// The promises about order that the model checks, for two messages A and B of one key, A acknowledged before B was sent.

export const STARTED = 'the first request with B starts after the delivery of A has ended'
export const FIRST = 'A does not reach the receiver for the first time after B'
export const AGAIN = 'A reaches the receiver again after B only if it was in flight when a node died'

export const PROMISES = [STARTED, FIRST, AGAIN]
