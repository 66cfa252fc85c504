// Next.js calls register() once when a server starts, before its first request. So a configuration error prevents the start,
// errors are logged from the beginning, and messages that a killed process left in its spool are sent without waiting for a request.

export async function register(): Promise<void> {
  // It is also called for the edge runtime, where there is no node:fs for the spool.
  if (process.env['NEXT_RUNTIME'] !== 'nodejs') return
  const { analytics } = await import('./lib/analytics.ts')
  analytics.on('error', (error) => console.error(`analytics: ${error.code}: ${error.message}`))
}
