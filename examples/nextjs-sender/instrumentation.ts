// Next.js calls register() once when a server starts, before its first request: so a mistake in the settings stops the start,
// errors are logged from the beginning, and what a process that was killed left in its spool goes out without waiting for a request.

export async function register(): Promise<void> {
  // It is called for the edge runtime, too, where there is no node:fs to spool to.
  if (process.env['NEXT_RUNTIME'] !== 'nodejs') return
  const { analytics } = await import('./lib/analytics.ts')
  analytics.on('error', (error) => console.error(`analytics: ${error.code}: ${error.message}`))
}
