// The paths of the tracking API. Trailing and doubled slashes in a path are ignored: Segment's Java client posts to /v1/import/, and a host setting that
// ends in a slash gives //v1/batch.

import { MESSAGE_TYPES, type MessageType } from '@switchyard/protocol'
import type { Route } from './parsing/parse-request.ts'

export const PREFIX = '/v1'
export const METRICS_PATH = '/m'
/** Answered with an image whatever follows it, even nothing. */
export const PIXEL_PATH = '/pixel/'
/** RudderStack's browser client uses these two paths and cannot be configured otherwise. */
export const SOURCE_CONFIG_PATH = '/sourceConfig'
export const BEACON_PATH = '/beacon/v1/batch'
const SHORT_FORMS: Readonly<Record<MessageType, string>> = { identify: 'i', track: 't', page: 'p', screen: 's', group: 'g', alias: 'a' }
export const POST_PATHS: ReadonlyMap<string, Route> = new Map<string, Route>([
  ['/batch', 'batch'],
  ['/import', 'batch'],
  ['/b', 'batch'],
  ...MESSAGE_TYPES.map((type): [string, Route] => [`/${type}`, type]),
  ...MESSAGE_TYPES.map((type): [string, Route] => [`/${SHORT_FORMS[type]}`, type]),
])

/** The paths for messages as most clients write them, with the prefix. */
export const DIRECT_PATHS: ReadonlyMap<string, Route> = new Map([...POST_PATHS].map(([path, route]) => [`${PREFIX}${path}`, route]))

/** For Fastify's `rewriteUrl`: returns the URL under which a tracking path is registered. Other URLs stay as they are. */
export function rewriteTrackingUrl({ url = '/' }: { url?: string | undefined }): string {
  const query = url.indexOf('?')
  const end = query === -1 ? url.length : query
  const doubled = url.indexOf('//')
  if (url[end - 1] !== '/' && (doubled === -1 || doubled >= end)) return url
  let path = url.slice(0, end).replaceAll(/\/{2,}/g, '/')
  if (path.endsWith('/') && path !== `${PREFIX}${PIXEL_PATH}`) path = path.slice(0, -1)
  return isTracking(path) ? path + url.slice(end) : url
}

export function isTracking(url: string): boolean {
  return url.startsWith(`${PREFIX}/`) || url === BEACON_PATH || url.startsWith(`${BEACON_PATH}?`)
}

export function typeNamed(name: string): MessageType | undefined {
  return MESSAGE_TYPES.find((type) => type === name || SHORT_FORMS[type] === name)
}
