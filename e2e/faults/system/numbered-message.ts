// The messages of the system under fault. Each has a number, which decides how its deliveries must end, and of which account it is: the key of ordered
// destinations. One account has a twentieth of the messages; the others share the rest, in pairs of neighbours.

export function numberedMessage(messageId: string, nth: number) {
  const properties = { n: nth, total: nth / 100, account: accountOf(nth), text: 'x'.repeat(nth % 400) }
  return { type: 'track' as const, messageId, userId: `user of ${messageId}`, event: 'Order Completed', properties }
}

export function numberOf(messageId: string): number {
  return Number(messageId.slice(messageId.lastIndexOf('-') + 1))
}

export const BY_ACCOUNT = 'properties.account'
const ACCOUNTS = 40

export function accountOf(nth: number): string {
  return nth % 20 === 0 ? 'a large one' : `account ${(Math.imul(nth >>> 1, 0x9e3779b1) >>> 8) % ACCOUNTS}`
}
