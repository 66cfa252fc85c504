/** The longest delay that a timer supports; one with a longer delay would fire immediately. */
export const MAX_TIMER_MS = 2 ** 31 - 1
