// Preloaded into a node (--import): what it does every hour, such as dropping old messages, it does every second. No round takes an hour.

const HOUR_MS = 3_600_000
const INSTEAD_MS = 1_000
const setIntervalOf = globalThis.setInterval

globalThis.setInterval = ((act: () => void, ms: number, ...values: []) =>
  setIntervalOf(act, ms === HOUR_MS ? INSTEAD_MS : ms, ...values)) as typeof setInterval
