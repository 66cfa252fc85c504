// The addresses that the dashboard's page is answered under: its views have addresses of their own, which can be shared and opened
// anew. A test holds them against packages/dashboard/src/routes.tsx. Everything else that is not there stays 404.

export const PAGE_PATHS: readonly string[] = [
  '/',
  '/start',
  '/live',
  '/sources',
  '/sources/:id',
  '/destinations',
  '/destinations/:id',
  '/messages',
  '/messages/:id',
  '/deliveries',
  '/deliveries/:id',
  '/replays',
  '/replays/:id',
  '/deletions',
  '/deletions/:id',
  '/settings',
  '/settings/:tab',
  '/signature',
]

/** The files that the page loads. */
export const FILE_PATHS: readonly string[] = ['/assets/:name', '/icon.svg', '/scheme.js']
