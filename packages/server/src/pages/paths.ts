// The paths of the dashboard. Each view has its own path, so that links to it can be shared and reloaded. A test compares them with
// packages/dashboard/src/routes.tsx. All other unknown paths return 404.

export const PAGE_PATHS: readonly string[] = [
  '/',
  '/start',
  '/map',
  '/live',
  '/sources',
  '/sources/:id',
  '/destinations',
  '/destinations/:id',
  '/catalog',
  '/catalog/:slug',
  '/events',
  '/events/:id',
  '/plans',
  '/plans/new',
  '/plans/:id',
  '/messages',
  '/messages/:id',
  '/deliveries',
  '/deliveries/:id',
  '/sql',
  '/replays',
  '/replays/:id',
  '/alerts',
  '/alerts/:id',
  '/deletions',
  '/deletions/:id',
  '/settings',
  '/settings/:tab',
  '/signature',
]

/** The files that the page loads. */
export const FILE_PATHS: readonly string[] = ['/assets/:name', '/icon.svg', '/scheme.js']
