// The messages of the system under fault. Each has a number, which decides how its deliveries must end.

export function numberedMessage(messageId: string, nth: number) {
  const properties = { n: nth, total: nth / 100, text: 'x'.repeat(nth % 400) }
  return { type: 'track' as const, messageId, userId: `user of ${messageId}`, event: 'Order Completed', properties }
}

export function numberOf(messageId: string): number {
  return Number(messageId.slice(messageId.lastIndexOf('-') + 1))
}
