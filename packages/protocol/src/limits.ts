// The limits of messages and batches, shared by client and server. A kilobyte is 1,024 bytes, and bytes are UTF-8 bytes of the
// JSON as sent. The public clients count UTF-16 units or stringify again, so they reject or accept the wrong messages.

/** Maximum size of a single message, in bytes of JSON. */
export const MAX_MESSAGE_BYTES = 32 * 1024

/** Maximum size of the body of a batch request in bytes, including the envelope. */
export const MAX_BATCH_BYTES = 500 * 1024

/** Maximum number of messages in one batch request. */
export const MAX_BATCH_MESSAGES = 2_500

/** Maximum length of a `messageId`, in characters. */
export const MAX_MESSAGE_ID_LENGTH = 100
