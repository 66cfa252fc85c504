// The limits of messages and batches, in one place for client and server. A kilobyte is 1,024 bytes, and bytes are UTF-8 bytes of
// the JSON as sent: the public clients count UTF-16 units or re-stringify, and refuse or pass the wrong messages.

/** Largest single call, as JSON. */
export const MAX_MESSAGE_BYTES = 32 * 1024

/** Largest batch request body, envelope included. */
export const MAX_BATCH_BYTES = 500 * 1024

/** Most messages in one batch request. */
export const MAX_BATCH_MESSAGES = 2_500

/** Longest `messageId`, in characters. */
export const MAX_MESSAGE_ID_LENGTH = 100
