// Every page and its path. The code of a page is loaded when it is first opened. The service serves the dashboard at exactly these paths
// (packages/server/src/dashboard/paths.ts); a test compares the two lists.

import { type ComponentType, type LazyExoticComponent, lazy } from 'react'
import * as icons from './components/icons.tsx'

export interface View {
  /** A pattern in wouter's syntax. */
  path: string
  page: LazyExoticComponent<ComponentType<Record<string, string>>>
  /** Loads its code in advance. */
  load: () => Promise<unknown>
}

const view = (path: string, load: () => Promise<{ default: ComponentType<never> }>): View => ({
  path,
  page: lazy(load as () => Promise<{ default: ComponentType<Record<string, string>> }>),
  load,
})

export const VIEWS: readonly View[] = [
  view('/', () => import('./pages/overview/overview.tsx')),
  view('/start', () => import('./pages/start/start.tsx')),
  view('/map', () => import('./pages/map/map.tsx')),
  view('/live', () => import('./pages/live/live.tsx')),
  view('/sources', () => import('./pages/sources/sources.tsx')),
  view('/sources/:id', () => import('./pages/sources/source.tsx')),
  view('/destinations', () => import('./pages/destinations/destinations.tsx')),
  view('/destinations/:id', () => import('./pages/destinations/destination.tsx')),
  view('/catalog', () => import('./pages/catalog/catalog.tsx')),
  view('/catalog/:slug', () => import('./kinds/integration/new-integration.tsx')),
  view('/events', () => import('./pages/events/events.tsx')),
  view('/events/:id', () => import('./pages/events/event.tsx')),
  view('/plans', () => import('./pages/plans/plans.tsx')),
  view('/plans/new', () => import('./pages/plans/new-plan.tsx')),
  view('/plans/:id', () => import('./pages/plans/plan.tsx')),
  view('/messages', () => import('./pages/messages/messages.tsx')),
  view('/messages/:id', () => import('./pages/messages/message.tsx')),
  view('/deliveries', () => import('./pages/deliveries/deliveries.tsx')),
  view('/deliveries/:id', () => import('./pages/deliveries/delivery.tsx')),
  view('/sql', () => import('./pages/sql/sql.tsx')),
  view('/replays', () => import('./pages/replays/replays.tsx')),
  view('/replays/:id', () => import('./pages/replays/replay.tsx')),
  view('/alerts', () => import('./pages/alerts/alerts.tsx')),
  view('/alerts/:id', () => import('./pages/alerts/incident.tsx')),
  view('/deletions', () => import('./pages/deletions/deletions.tsx')),
  view('/deletions/:id', () => import('./pages/deletions/deletion.tsx')),
  view('/settings', () => import('./pages/settings/settings.tsx')),
  view('/settings/:tab', () => import('./pages/settings/settings.tsx')),
  view('/signature', () => import('./pages/signature/signature.tsx')),
]

/** Returns the view that is shown at a path. */
export function viewAt(pathname: string): View | undefined {
  const parts = pathname.split('/').length
  return VIEWS.find(({ path }) => path.split('/').length === parts && new RegExp(`^${path.replaceAll(/:\w+/g, '[^/]+')}$`).test(pathname))
}

/** In the order in which a message passes through. */
export const NAVIGATION = [
  { path: '/', label: 'Overview', Icon: icons.OverviewIcon },
  { path: '/map', label: 'Map', Icon: icons.MapIcon },
  { path: '/live', label: 'Live', Icon: icons.LiveIcon },
  { path: '/sources', label: 'Sources', Icon: icons.SourceIcon },
  { path: '/destinations', label: 'Destinations', Icon: icons.DestinationIcon },
  { path: '/events', label: 'Events', Icon: icons.EventIcon },
  { path: '/plans', label: 'Plans', Icon: icons.PlanIcon },
  { path: '/messages', label: 'Messages', Icon: icons.MessageIcon },
  { path: '/deliveries', label: 'Deliveries', Icon: icons.DeliveryIcon },
  { path: '/replays', label: 'Replays', Icon: icons.ReplayIcon },
  { path: '/sql', label: 'SQL', Icon: icons.SqlIcon },
  { path: '/alerts', label: 'Alerts', Icon: icons.AlertIcon },
  { path: '/deletions', label: 'Deletions', Icon: icons.DeletionIcon },
  { path: '/signature', label: 'Signature checker', Icon: icons.SignatureIcon },
  { path: '/settings', label: 'Settings', Icon: icons.SettingsIcon },
] as const
